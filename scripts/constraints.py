"""Write constraints.txt, and see that its pins install on every Python that ``requires-python`` admits.

``python scripts/constraints.py write|check``, with a Python of the oldest minor version that has pip and
``packaging`` (``make constraints`` makes one). ``write`` takes the newest releases that every Python takes.

No machine has all Pythons, and pip reads markers for the Python that runs it alone. So a check reads the
pins' own metadata, with the markers of the Python in question: for the first release of each minor version
and those that any pin's Requires-Python names, all that is needed must be pinned, fit and admit it. Then pip
looks, for the first release of each minor version, for a wheel of each pin that is needed there. The platform
is this machine's throughout.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
FILE = ROOT / "constraints.txt"
HEADER = "# The versions that CI runs; every Python from {oldest} on takes them. Written by make constraints."
MINORS = (11, 12, 13, 14)


@dataclass(frozen=True)
class Release:
    """One release of a package: what it asks of Python and of other packages."""

    name: str
    version: str
    python: SpecifierSet
    needs: tuple[Requirement, ...]

    @classmethod
    def of(cls, metadata: dict[str, Any]) -> Release:
        """From pip's report of a package's metadata."""
        return cls(
            metadata["name"],
            metadata["version"],
            SpecifierSet(metadata.get("requires_python") or ""),
            tuple(map(Requirement, metadata.get("requires_dist") or ())),
        )


def project() -> tuple[Version, tuple[Requirement, ...]]:
    """(oldest Python, what the project and all its extras need)."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = told["optional-dependencies"]
    asked = [*told["dependencies"], *(line for lines in extras.values() for line in lines)]
    needs = tuple(need for need in map(Requirement, asked) if canonicalize_name(need.name) != told["name"])
    (oldest,) = (Version(each.version) for each in SpecifierSet(told["requires-python"]))
    return Version(f"{oldest}.0"), needs


def edges(oldest: Version, releases: dict[str, Release]) -> list[Version]:
    """First release of each minor version, and each release of Python that a pin names, or next to it."""
    named = {Version(f"3.{minor}.0") for minor in MINORS}
    for release in releases.values():
        told = " ".join([str(release.python), *(str(need.marker) for need in release.needs)])
        for minor, patch in re.findall(r"\b3\.(\d+)\.(\d+)\b", told):
            near = range(max(0, int(patch) - 1), int(patch) + 2)
            named |= {Version(f"3.{minor}.{each}") for each in near}
    return sorted(version for version in named if version >= oldest and version.minor in MINORS)


def walk(
    python: Version, needs: tuple[Requirement, ...], releases: dict[str, Release]
) -> tuple[set[str], list[tuple[str, str]]]:
    """(packages that ``needs`` bring along on a Python, (package, what is wrong) of each fault).

    ``releases``: by canonical name, the one release of each package that is pinned.
    """
    short = f"{python.major}.{python.minor}"
    here: dict[str, Any] = dict(default_environment()) | {"python_version": short}
    here |= {"python_full_version": str(python), "implementation_version": str(python)}
    left = [(need, "") for need in needs]
    seen: set[tuple[str, str]] = set()
    wrong: list[tuple[str, str]] = []
    while left:
        need, extra = left.pop()
        if need.marker and not need.marker.evaluate(here | {"extra": extra}):
            continue
        name = canonicalize_name(need.name)
        if name not in releases:
            wrong.append((name, "is needed and not pinned"))
            continue
        release = releases[name]
        if not need.specifier.contains(release.version, prereleases=True):
            wrong.append((name, f"is {release.version}, and {need} is needed"))
        new = {(name, asked) for asked in ("", *need.extras)} - seen
        seen |= new
        left += [(each, asked) for _, asked in new for each in release.needs]
    found = {name for name, _ in seen}
    wrong += [
        (name, f"{releases[name].version} wants Python {releases[name].python}")
        for name in found
        if not releases[name].python.contains(str(python))
    ]
    return found, list(dict.fromkeys(wrong))


def dry_run(folder: Path, *arguments: str) -> dict[str, Release]:
    """What pip would install, by canonical name; wheels alone.

    Raises:
        SystemExit: with what pip said, when it would not.
    """
    report = folder / "report.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--dry-run", "--ignore-installed", "--target", str(folder / "none"), "--report", str(report)),
            *("--only-binary", ":all:", *arguments),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"pip {' '.join(arguments[:6])} ...:\n{done.stderr}")
    found = [Release.of(each["metadata"]) for each in json.loads(report.read_text())["install"]]
    return {canonicalize_name(each.name): each for each in found}


def write(folder: Path) -> None:
    """Resolve for the oldest Python; a release that any other refuses is struck out, and pip asked again."""
    oldest, needs = project()
    struck = folder / "struck.txt"
    struck.write_text("")
    for_oldest = ("--python-version", str(oldest), "-c", str(struck))
    while True:
        releases = dry_run(folder, *for_oldest, *map(str, needs))
        refused = {
            name for python in edges(oldest, releases)
            for name, what in walk(python, needs, releases)[1] if "wants Python" in what
        }  # fmt: skip
        if not refused:
            break
        with struck.open("a") as file:
            for name in sorted(refused):
                print(f"{name}<{releases[name].version}", file=file)
    pins = [f"{releases[name].name}=={releases[name].version}" for name in sorted(releases)]
    FILE.write_text("\n".join([HEADER.format(oldest=oldest), *pins]) + "\n", encoding="utf-8")
    print(f"wrote {len(pins)} pins")


def check(folder: Path) -> None:
    """Metadata, then wheels; ends the program with all that is wrong."""
    oldest, needs = project()
    pins = [line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    releases = dry_run(folder, "--no-deps", "--ignore-requires-python", *pins)
    asked = edges(oldest, releases)
    wrong = [
        f"Python {python}: {name} {what}"
        for python in asked
        for name, what in walk(python, needs, releases)[1]
    ]
    if wrong:
        raise SystemExit("\n".join(wrong))
    print(f"{len(pins)} pins fit each other and admit Python", *asked, flush=True)
    for python in (Version(f"3.{minor}.0") for minor in MINORS):
        wanted = [f"{name}=={releases[name].version}" for name in walk(python, needs, releases)[0]]
        found = dry_run(folder, "--no-deps", "--python-version", str(python), *wanted)
        print(f"Python {python}: {len(found)} wheels are there for {sys.platform}", flush=True)


def main() -> None:
    """``write`` (which checks as well) or ``check``."""
    tasks = {"write": (write, check), "check": (check,)}
    if len(sys.argv) != 2 or sys.argv[1] not in tasks:
        raise SystemExit("say what to do: write or check")
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks[sys.argv[1]]:
            task(Path(folder))


if __name__ == "__main__":
    main()

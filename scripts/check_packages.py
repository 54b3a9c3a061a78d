"""Build the wheel and the sdist, and use them in clean environments on every Python that is here.

``python scripts/check_packages.py [PYTHON ...]``: each is 3.11 or newer; without names, those on the path
and those of pyenv. Each is installed alone and with the extra ``app``, and run from a folder whose own
modules have the names of our packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("tracer", "layouts", "app")
OLDEST = (3, 11)
#: What runs without any extra, and what each extra adds; each line must end with 0.
ENGINE = (
    ("--version",),
    ("trip", "six-cuts"),
    ("rank", "six-cuts", "11"),
    ("export", "six-cuts", "--to", "trip.svg", "--to", "trip.html"),
    ("from", "vllm", "--gpus", "8", "--", "-tp", "8"),
)
WITH_APP = (("census", "six-cuts", "--tokens", "64"), ("export", "six-cuts", "--to", "trip.png"))
SERVE = """from app.server import create_server
assert create_server().test_client().get("/").status_code == 200"""


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output; ends the program with what was said when the command fails."""
    done = subprocess.run(command, cwd=cwd, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}


def pythons(names: list[str]) -> Iterator[tuple[str, str]]:
    """(path, version) of each Python that is new enough, one a minor version."""
    places = names or [
        *(f"python3.{minor}" for minor in range(11, 20)),
        *map(str, sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"))),
    ]
    seen = set()
    for place in places:
        say = "import sys; print(sys.executable, '%d.%d.%d' % sys.version_info[:3])"
        try:
            done = subprocess.run([place, "-c", say], capture_output=True, text=True, check=False)
        except OSError:
            continue
        if done.returncode:
            continue
        path, version = done.stdout.split()
        minor = tuple(map(int, version.split(".")[:2]))
        if minor >= OLDEST and minor not in seen:
            seen.add(minor)
            yield path, version


def build(folder: Path) -> list[Path]:
    """The wheel, and the sdist."""
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return sorted(folder.glob("*.whl")) + sorted(folder.glob("*.tar.gz"))


def check(python: str, distribution: Path, extra: str, place: Path) -> None:
    """Install into a clean environment, and run it from a hostile folder."""
    run(python, "-m", "venv", place / "venv", cwd=place)
    tools = place / "venv" / ("Scripts" if os.name == "nt" else "bin")
    wanted = f"{distribution}[{extra}]" if extra else str(distribution)
    pip = (tools / "python", "-m", "pip")
    # Python compiles what it imports: no need to compile every module that an extra brings along.
    run(*pip, "install", "--quiet", "--no-compile", "-c", ROOT / "constraints.txt", wanted, cwd=place)
    run(*pip, "check", cwd=place)
    hostile = place / "hostile"
    hostile.mkdir()
    for package in PACKAGES:
        (hostile / f"{package}.py").write_text("raise SystemExit('hostile')\n")
    for words in (*ENGINE, *(WITH_APP if extra else ())):
        run(tools / "tokentrip", *words, cwd=hostile)
    if extra:
        run(tools / "python", "-I", "-c", SERVE, cwd=hostile)


def main() -> None:
    """Every Python, both distributions, with and without the explorer."""
    with tempfile.TemporaryDirectory() as folder:
        made = build(Path(folder))
        for path, version in pythons(sys.argv[1:]):
            for distribution in made:
                for extra in ("", "app"):
                    with tempfile.TemporaryDirectory() as place:
                        check(path, distribution, extra, Path(place))
                    said = f"{distribution.name}{f'[{extra}]' if extra else ''}"
                    print(f"Python {version}: {said}: installed, checked and run", flush=True)


if __name__ == "__main__":
    main()

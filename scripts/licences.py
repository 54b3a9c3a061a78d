"""Print what tokentrip is installed with, and under which licence, from the packages' own metadata."""

from __future__ import annotations

from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "tokentrip"
#: Extras that a user installs; what only tests and documents need is not shipped to anyone.
EXTRAS = ("census", "frameworks", "cluster", "app")
UNKNOWN = "not stated in the metadata"
#: How the texts of licences begin, for packages whose metadata name none.
OPENINGS = {"Permission is hereby granted, free of charge": "MIT", "Mozilla Public License": "MPL-2.0"}
Wanted = tuple[str, tuple[str, ...]]


def needs(name: str, extras: tuple[str, ...]) -> set[Wanted]:
    """(package, its extras) of what a package with some extras needs on this system."""
    found = set()
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            found.add((canonicalize_name(requirement.name), tuple(sorted(requirement.extras))))
    return found


def licence_of(name: str) -> str:
    """The licence of an installed package, as it states it."""
    about = metadata.metadata(name)
    said = about.get("License-Expression") or ""
    if not said:
        classes = [each for each in about.get_all("Classifier") or [] if each.startswith("License ::")]
        said = "; ".join(each.split(" :: ")[-1] for each in classes)
    said = said or (about.get("License") or "").strip()
    files = [each for each in metadata.files(name) or [] if each.stem.upper() in ("LICENSE", "LICENCE")]
    if not said and files:
        text = files[0].read_text(encoding="utf-8")
        said = next((licence for words, licence in OPENINGS.items() if words in text), "")
    return said.splitlines()[0][:60].strip() if said else UNKNOWN


def licences() -> dict[str, str]:
    """Licence by package, for all that tokentrip and its extras bring along and that is installed here."""
    found: dict[str, str] = {}
    seen: set[Wanted] = set()
    waiting: list[Wanted] = [(ROOT, EXTRAS)]
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found[wanted[0]] = licence_of(wanted[0])
        except metadata.PackageNotFoundError:  # for another system or Python
            continue
        waiting += sorted(needs(*wanted))
    return dict(sorted(found.items()))


def table() -> str:
    """The licences as a Markdown table."""
    rows = [f"| {name} | {metadata.version(name)} | {licence} |" for name, licence in licences().items()]
    return "\n".join(["| package | version | licence |", "| --- | --- | --- |", *rows])


if __name__ == "__main__":
    print(table())

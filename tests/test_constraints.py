"""The pins of constraints.txt install on every Python, by their own metadata; and what does not is named."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[1]
TOLD = run_path(str(ROOT / "scripts" / "constraints.py"))
OLDEST, NEEDS = TOLD["project"]()


def release(name: str, version: str, python: str = "", *needs: str) -> Any:
    return TOLD["Release"].of(
        {"name": name, "version": version, "requires_python": python, "requires_dist": list(needs)}
    )


def pinned() -> dict[str, Any]:
    """The pins with their metadata, where they are what is installed here."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = {}
    for name, _, version in (line.partition("==") for line in lines if not line.startswith("#")):
        try:
            told = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            pytest.skip(f"{name} is not installed: make setup")
        if told.version != version:
            pytest.skip(f"{name} {told.version} is installed, {version} is pinned: make setup")
        python = told.metadata.get("Requires-Python", "")
        found[TOLD["canonicalize_name"](name)] = release(name, version, python, *(told.requires or ()))
    return found


def test_the_pins_fit_each_other_and_every_python() -> None:
    releases = pinned()
    pythons = TOLD["edges"](OLDEST, releases)
    assert Version("3.11.0") in pythons
    for python in pythons:
        assert TOLD["walk"](python, NEEDS, releases)[1] == [], python


@pytest.mark.parametrize(
    ("releases", "python", "wrong"),
    [
        ([], "3.11.0", [("one", "is needed and not pinned")]),
        ([release("one", "2.0")], "3.11.0", []),
        ([release("one", "0.9")], "3.11.0", [("one", "is 0.9, and one[more]>=1 is needed")]),
        ([release("one", "2.0", ">=3.11.5")], "3.11.4", [("one", "2.0 wants Python >=3.11.5")]),
        ([release("one", "2.0", ">=3.11.5")], "3.11.5", []),
        ([release("one", "2.0", "", 'two; python_version < "3.12"')], "3.12.0", []),
        (
            [release("one", "2.0", "", 'two; python_version < "3.12"')],
            "3.11.0",
            [("two", "is needed and not pinned")],
        ),
        (
            [release("one", "2.0", "", 'two; extra == "more"')],
            "3.11.0",
            [("two", "is needed and not pinned")],
        ),
        ([release("one", "2.0", "", 'two; extra == "other"')], "3.11.0", []),
    ],
)
def test_what_does_not_install_is_named(
    releases: list[Any], python: str, wrong: list[tuple[str, str]]
) -> None:
    needs = (TOLD["Requirement"]("one[more]>=1"),)
    assert TOLD["walk"](Version(python), needs, {each.name: each for each in releases})[1] == wrong


def test_pythons_that_a_pin_names_are_asked_and_those_beside_them() -> None:
    releases = {"one": release("one", "1", "!=3.14.1,>=3.11", 'two; python_full_version < "3.12.4"')}
    asked = [str(python) for python in TOLD["edges"](Version("3.11.0"), releases)]
    expected = "3.11.0 3.12.0 3.12.3 3.12.4 3.12.5 3.13.0 3.14.0 3.14.1 3.14.2"
    assert asked == expected.split()

"""CONTRIBUTING carried out: each section's new file and its registration, in a copy of the packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
STEP = re.compile(
    r"^```\w+ (?P<kind>new|file|check)=?(?P<path>\S*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
#: Where each kind of thing is registered; a preset registers itself, a hop is also taken by the itinerary.
REGISTERED = {
    "A hop": {"tracer/trip/hop.py", "tracer/trip/itinerary.py"},
    "A model family": {"tracer/model/configs/families.py"},
    "A framework": {"tracer/frameworks/registry.py"},
    "A preset": set(),
    "A page": {"app/pages.py"},
}


class Step(NamedTuple):
    """One fenced block: a new file, lines to add to a file, or the check."""

    kind: str
    path: str
    body: str


def section(heading: str) -> str:
    return re.split(r"^## ", TEXT, flags=re.MULTILINE)[1 + headings().index(heading)]


def headings() -> list[str]:
    return re.findall(r"^## (.+)$", TEXT, flags=re.MULTILINE)


def steps(heading: str) -> list[Step]:
    return [Step(*found.group("kind", "path", "body")) for found in STEP.finditer(section(heading))]


def copy_packages(folder: Path) -> None:
    for package in ("tracer", "layouts", "app"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))


def add_lines(path: Path, diff: str) -> None:
    """Put the lines marked ``+`` where the lines around them stand, which must be one place."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] == " ")
    new = "".join(line[1:] for line in lines)
    text = path.read_text()
    assert {line[0] for line in lines} == {" ", "+"}, diff
    assert text.count(old) == 1, f"{path.name} has {text.count(old)} places for\n{diff}"
    path.write_text(text.replace(old, new))


def run(check: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The check with the packages of a folder, and proof that it used those."""
    proof = f"import tracer\nassert tracer.__file__.startswith({str(folder)!r}), tracer.__file__\n"
    return subprocess.run(
        [sys.executable, "-c", proof + check],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("heading", REGISTERED)
def test_a_new_file_and_its_registration_are_all_it_takes(heading: str, tmp_path: Path) -> None:
    found = steps(heading)
    (check,) = [step.body for step in found if step.kind == "check"]
    copy_packages(tmp_path)
    without = run(check, tmp_path)
    assert without.returncode != 0
    assert "tracer.__file__" not in without.stderr
    new = [step for step in found if step.kind == "new"]
    changed = [step for step in found if step.kind == "file"]
    assert len(new) == (heading != "A model family")  # a family is an entry of a table, without a file
    assert {step.path for step in changed} == REGISTERED[heading]
    for step in new:
        assert not (ROOT / step.path).exists()
        (tmp_path / step.path).write_text(step.body)
    for step in changed:
        add_lines(tmp_path / step.path, step.body)
    done = run(check, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_ten_questions_lead_to_files_that_are_there() -> None:
    rows = re.findall(r"^\| (\w.+\?) \| `(\S+)` \|$", section("Ten questions"), flags=re.MULTILINE)
    assert len(rows) == 10
    assert [path for _, path in rows if not (ROOT / path).is_file()] == []


def test_no_block_of_the_text_is_left_out() -> None:
    fences = len(re.findall(r"^```\w", TEXT, flags=re.MULTILINE))
    assert fences == sum(len(steps(heading)) for heading in REGISTERED)

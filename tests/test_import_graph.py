"""The import graph of the packages has no circle and no arrow back up; and the script finds both."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[1]
GRAPH = run_path(str(ROOT / "scripts" / "import_graph.py"), run_name="import_graph")


def build(root: Path, files: dict[str, str]) -> Path:
    """A made-up tree of our packages; ``tracer/mesh.py`` and the like by their text."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    (root / "tracer").mkdir(exist_ok=True)
    (root / "tracer" / "__init__.py").touch()
    return root


def told(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """The exit code of the script and the faults it prints."""
    code = GRAPH["main"]([str(root)])
    lines = capsys.readouterr().out.splitlines()
    return code, [line for line in lines if line.startswith(("circle", "arrow back up"))]


def test_the_packages_have_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(ROOT, capsys) == (0, [])


def test_every_room_of_the_engine_has_its_floor() -> None:
    rooms = {GRAPH["room_of"](module) for module in GRAPH["read_graph"](ROOT)}
    floors = {f"tracer.{room}" for floor in GRAPH["ORDER"] for room in floor}
    assert {room for room in rooms if room.startswith("tracer.")} <= floors


def test_a_tree_whose_imports_go_down_has_no_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"tracer/mesh/mesh.py": "from tracer.errors import x", "tracer/errors.py": "x = 1"}
    assert told(build(tmp_path, files), capsys) == (0, [])


TYPE_ONLY = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from tracer.trip.log import b\n"
LAZY = "def later():\n    from tracer.trip import log\n"


@pytest.mark.parametrize("back", ["from tracer.trip.log import b", TYPE_ONLY, LAZY])
def test_a_circle_is_found(back: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"tracer/trip/log.py": "import tracer.trip.trip", "tracer/trip/trip.py": back}
    assert told(build(tmp_path, files), capsys) == (1, ["circle: tracer.trip.log <-> tracer.trip.trip"])


def test_a_circle_of_rooms_without_a_circle_of_files_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "layouts/svg/pen.py": "import layouts.words.tell",
        "layouts/words/tell.py": "",
        "layouts/words/sums.py": "import layouts.svg.map",
        "layouts/svg/map.py": "",
    }
    assert told(build(tmp_path, files), capsys) == (1, ["circle of rooms: layouts.svg <-> layouts.words"])


def test_an_arrow_back_up_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"tracer/mesh/mesh.py": "import tracer.trip.trip", "tracer/trip/trip.py": ""}
    assert told(build(tmp_path, files), capsys) == (
        1,
        ["arrow back up: tracer.mesh.mesh -> tracer.trip.trip"],
    )

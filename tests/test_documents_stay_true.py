"""Pictures carry their scenario, and documents their blocks: both are checked and filled."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import tokentrip
from app.exports.pixel_stamp import take_text
from tests.test_command_line import HAND_WRITTEN, run, run_json
from tracer.scenario.files import load_scenario
from tracer.trip.log import totals_line
from tracer.trip.trips import take_trips

BLOCKS = """# Notes

<!-- tokentrip: counts six-cuts -->
<!-- /tokentrip -->

<!-- tokentrip: table mesh.toml -->
old
<!-- /tokentrip -->

<!-- tokentrip: log six-cuts -->
<!-- /tokentrip -->

<!-- tokentrip: picture mesh.toml hop=4 file=dispatch.svg -->
<!-- /tokentrip -->

<!-- tokentrip: picture six-cuts tokens=0,3:40 file=together.svg -->
<!-- /tokentrip -->
"""


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    file = tmp_path / "mesh.toml"
    file.write_text(HAND_WRITTEN)
    return file


@pytest.mark.parametrize("ending", ["svg", "mmd", "seq.mmd", "dot", "graphml", "png", "gif"])
def test_a_picture_is_up_to_date_until_its_scenario_changes(mesh: Path, ending: str) -> None:
    picture = mesh.parent / f"trip.{ending}"
    assert run("export", str(mesh), "--to", str(picture)).exit_code == 0
    assert run_json("export", "--check", str(picture))["files"][0]["up_to_date"]
    mesh.write_text(HAND_WRITTEN.replace("1 = [5, 27]", "1 = [5, 1]"))
    stale = run("export", "--check", str(picture))
    assert stale.exit_code == 1
    assert "picks.1: [5, 27] → [5, 1]" in stale.stdout


def test_a_picture_edited_by_hand_is_noticed(tmp_path: Path) -> None:
    picture = tmp_path / "trip.svg"
    run("export", "six-cuts", "--to", str(picture), "--hop", "4")
    picture.write_text(picture.read_text().replace("GPU 13", "GPU 12"))
    stale = run("export", "--check", str(picture))
    assert stale.exit_code == 1
    assert "edited after it was exported" in stale.stdout


@pytest.mark.parametrize("ending", [".png", ".gif"])
def test_pixels_keep_their_stamp_and_their_look(tmp_path: Path, ending: str) -> None:
    from PIL import Image

    picture = tmp_path / f"trip{ending}"
    run("export", "six-cuts", "--to", str(picture), "--hop", "2")
    with Image.open(picture) as opened:
        opened.load()
        plain = opened.convert("RGB").tobytes()
        said = opened.info.get("tokentrip") or opened.info["comment"].decode()
    assert '"scenario"' in said
    found = take_text(picture.read_bytes(), ending)
    assert found is not None
    assert found[0] in said
    picture.write_bytes(found[1])
    with Image.open(picture) as opened:
        assert opened.convert("RGB").tobytes() == plain
    bare = run("export", "--check", str(picture))
    assert bare.exit_code == 2
    assert "carries no scenario" in bare.stderr


def test_pixels_painted_over_are_noticed(tmp_path: Path) -> None:
    picture = tmp_path / "trip.png"
    run("export", "six-cuts", "--to", str(picture))
    data = bytearray(picture.read_bytes())
    data[200] ^= 1
    picture.write_bytes(data)
    stale = run("export", "--check", str(picture))
    assert stale.exit_code == 1
    assert "edited after it was exported" in stale.stdout


def test_a_picture_made_with_flags_carries_the_whole_scenario(tmp_path: Path) -> None:
    picture = tmp_path / "trip.svg"
    run("export", "six-cuts", "--order", "tp-cp-pp-dp", "--to", str(picture))
    assert run("export", "--check", str(picture)).exit_code == 0


def test_a_picture_without_a_scenario_or_source_is_wrong_input(mesh: Path) -> None:
    bare = mesh.parent / "bare.svg"
    bare.write_text("<svg></svg>")
    assert "carries no scenario" in run("export", "--check", str(bare)).stderr
    broken = mesh.parent / "broken.svg"
    broken.write_text("<svg><metadata>tokentrip {]</metadata></svg>")
    assert "does not read" in run("export", "--check", str(broken)).stderr
    picture = mesh.parent / "trip.svg"
    run("export", str(mesh), "--to", str(picture))
    mesh.unlink()
    gone = run("export", "--check", str(picture))
    assert (gone.exit_code, "is gone" in gone.stderr) == (2, True)


def test_documents_are_filled_checked_and_found_stale(mesh: Path) -> None:
    document = mesh.parent / "notes.md"
    document.write_text(BLOCKS)
    stale = run("export", "--check", str(document))
    assert stale.exit_code == 1
    assert "line 3: counts six-cuts" in stale.stdout
    assert "dispatch.svg is missing or out of date" in stale.stdout
    assert "5 blocks changed, 2 pictures written" in run("export", "--fill", str(document)).stdout
    text = document.read_text()
    assert "23/32 GPUs · 15 node crossings (14 ep, 1 pp) · 41 comm ops" in text
    assert "| 1 | dispatch | 7 | 1 | 4 |" in text
    assert "](dispatch.svg)" in text
    together = take_trips(load_scenario("six-cuts"), [0, (3, 40)])
    assert f"Map of six-cuts: {totals_line(together)}" in text
    assert "2 tokens · the whole trip" in (mesh.parent / "together.svg").read_text()
    pictures = [str(mesh.parent / name) for name in ("dispatch.svg", "together.svg")]
    assert run("export", "--check", str(document), *pictures).exit_code == 0
    shutil.copy(document, mesh.parent / "again.md")
    assert "0 blocks changed" in run("export", "--fill", str(mesh.parent / "again.md")).stdout


def test_a_name_that_the_system_refuses_is_a_missing_picture(mesh: Path) -> None:
    document, name = mesh.parent / "long.md", "x" * 300
    document.write_text(f"<!-- tokentrip: picture {mesh.name} file={name}.svg -->\n<!-- /tokentrip -->\n")
    result = run("export", "--check", str(document))
    assert result.exit_code == 1
    assert f"{name}.svg is missing or out of date" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- tokentrip: counts six-cuts -->\n", "has no end"),
        ("<!-- tokentrip: count six-cuts -->\n<!-- /tokentrip -->", "did you mean 'counts'"),
        ("<!-- tokentrip: counts six-cut -->\n<!-- /tokentrip -->", "did you mean 'six-cuts'"),
        ("<!-- tokentrip: picture six-cuts hop=99 -->\n<!-- /tokentrip -->", "a hop from 0 to 41"),
        ("<!-- tokentrip: table six-cuts tokens=0,1 -->\n<!-- /tokentrip -->", "cannot hold 2 tokens"),
        ("<!-- tokentrip: picture six-cuts file=x.png -->\n<!-- /tokentrip -->", "must name an .svg file"),
    ],
)
def test_wrong_blocks_are_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    document = tmp_path / "notes.md"
    document.write_text(text)
    result = run("export", "--check", str(document))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "notes.md" in result.stderr or "six-cut" in result.stderr


def test_a_check_goes_on_after_a_file_that_it_cannot_read(tmp_path: Path) -> None:
    drawn, foreign = tmp_path / "a.svg", tmp_path / "b.svg"
    assert CliRunner().invoke(tokentrip, ["export", "six-cuts", "--to", str(drawn)]).exit_code == 0
    foreign.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    missing = tmp_path / "c.svg"
    done = CliRunner().invoke(tokentrip, ["export", "--check", str(missing), str(foreign), str(drawn)])
    assert done.exit_code == 2
    assert f"{drawn}: up to date" in done.output
    assert "not checked: carries no scenario" in done.output
    assert done.output.rstrip().endswith("3 files: 1 up to date, 2 not checked")
    only_ours = ["export", "--check", "--skip-others", str(foreign), str(drawn)]
    assert CliRunner().invoke(tokentrip, only_ours).exit_code == 0

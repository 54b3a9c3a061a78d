"""Pictures in files: what plays, what stands alone, what is pixels; their sizes and their stamps."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from app.cli import tokentrip
from app.exports.formats import FORMATS, format_of
from layouts.animation.animated_svg import MAX_HOPS, render_animated_svg
from layouts.animation.clockwork import Clockwork, joined
from layouts.compose.scene_of_trip import build_scene
from layouts.scene.scene import Scene
from tracer.errors import ConfigError
from tracer.scenario.files import load_scenario
from tracer.trip.trip import Trip, take_trip
from tracer.trip.trips import Trips

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def trip() -> Trip:
    return take_trip(load_scenario("six-cuts"))


@pytest.fixture(scope="module")
def scene(trip: Trip) -> Scene:
    return build_scene(trip)


def export(folder: Path, *names: str, scenario: str = "six-cuts", more: tuple[str, ...] = ()) -> list[Path]:
    paths = [folder / name for name in names]
    words = [word for path in paths for word in ("--to", str(path))]
    done = CliRunner().invoke(tokentrip, ["export", scenario, *words, *more], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return paths


def test_the_picture_that_plays_and_the_page_are_small_enough(tmp_path: Path):
    moving, page = export(tmp_path, "trip.anim.svg", "trip.html")
    assert moving.stat().st_size <= 60_000
    assert page.stat().st_size <= 300_000


def test_the_animated_picture_has_no_script_and_asks_for_nothing(scene: Scene):
    text = render_animated_svg(scene)
    root = ElementTree.fromstring(text)
    assert not list(root.iter(f"{SVG}script"))
    assert not re.search(r'href="(?!#)', text)
    assert "prefers-color-scheme:dark" in text
    names = {element.get("id") for element in root.iter() if element.get("id")}
    assert {use.get("href", "")[1:] for use in root.iter(f"{SVG}use")} <= names


def test_every_move_rides_once_and_the_clock_ends_after_the_last(scene: Scene):
    root = ElementTree.fromstring(render_animated_svg(scene))
    begins = [motion.get("begin", "").split(";") for motion in root.iter(f"{SVG}animateMotion")]
    assert sum(len(each) for each in begins) == sum(len(hop.moves) for hop in scene.hops)
    (clock,) = [each for each in root.iter(f"{SVG}animate") if each.get("id") == "c"]
    times = [float(begin.removeprefix("c.begin+")) for each in begins for begin in each]
    assert max(times) < float(clock.get("dur", "0"))
    assert clock.get("begin") == "0;c.end"


def test_a_reader_that_plays_nothing_sees_the_whole_trip(scene: Scene):
    root = ElementTree.fromstring(render_animated_svg(scene))
    hidden = {child for each in root.iter() if each.get("display") == "none" for child in each.iter()}
    shown = "".join(text.text or "" for text in root.iter(f"{SVG}text") if text not in hidden)
    assert "the whole trip" in shown
    assert "23/32 GPUs · 15 node crossings (14 ep, 1 pp)" in shown
    assert "Dispatch" not in shown


def test_one_hop_plays_alone(scene: Scene):
    text = render_animated_svg(scene, 4)
    root = ElementTree.fromstring(text)
    assert len(list(root.iter(f"{SVG}animateMotion"))) == len(scene.hops[4].moves)
    with pytest.raises(ValueError, match="hop=42 must be from 0 to 41"):
        render_animated_svg(scene, 42)


def test_beats_follow_each_other_without_a_gap(scene: Scene):
    clock = Clockwork.of(scene.hops)
    for before, after in zip(clock.beats, clock.beats[1:], strict=False):
        assert before.end == after.start
        assert after.start <= after.arrive < after.end
    assert clock.total > clock.played == clock.beats[-1].end
    assert list(joined([(0, 1), (0.5, 2), (3, 4)])) == [(0, 2), (3, 4)]


def test_a_trip_too_long_for_one_picture_says_what_to_do():
    long = take_trip(load_scenario("deepseek-v3-prefill-ep32"))
    assert len(long.hops) > MAX_HOPS
    for ending in (".anim.svg", ".gif"):
        with pytest.raises(ConfigError, match="give --hop"):
            FORMATS[ending](Trips.of(long), None)
    assert "animateMotion" in str(FORMATS[".anim.svg"](Trips.of(long), 5))


def test_the_page_asks_no_network_and_holds_the_scene(trip: Trip):
    text = str(FORMATS[".html"](Trips.of(trip), 4))
    assert "default-src 'none'" in text
    outside = set(re.findall(r"https?://[\w./]+", text)) - {"http://www.w3.org/2000/svg"}
    assert not outside
    found = re.search(r'<script type="application/json" id="scene">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    values = json.loads(found[1])
    assert values["start"] == 4
    tally = values["hops"][-1]["tally"]
    assert (tally["gpus_touched"], tally["node_crossings"], tally["comm_ops"]) == (23, 15, 41)


def test_png_and_gif_are_pictures_of_the_trip(tmp_path: Path, scene: Scene):
    still, moving = export(tmp_path, "hop.png", "trip.gif", more=("--hop", "4"))
    with Image.open(still) as image:
        assert image.format == "PNG"
        assert abs(image.width - 2 * (scene.width + 32)) <= 2
        colours = {each for _, each in image.convert("RGB").getcolors(1 << 20)}
    assert (0xE3, 0x2D, 0x83) in colours
    assert (0xCF, 0x43, 0x10) in colours
    with Image.open(io.BytesIO(moving.read_bytes())) as image:
        assert getattr(image, "n_frames", 1) == 5
        image.seek(4)
        colours = {each for _, each in image.convert("RGB").getcolors(1 << 20)}
    assert {(0xE3, 0x2D, 0x83), (0xCF, 0x43, 0x10), (0x1A, 0x7B, 0x33)} <= colours


def test_pixels_have_their_text_on_a_host_without_fonts(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    import resvg_py

    from layouts.svg import raster

    with_text = raster.to_png(scene, 4)
    draw = resvg_py.svg_to_bytes
    monkeypatch.setattr(resvg_py, "svg_to_bytes", lambda **options: draw(**options, skip_system_fonts=True))
    assert raster.to_png(scene, 4) == with_text
    monkeypatch.setattr(raster, "FONT_FILES", [])
    assert raster.to_png(scene, 4) != with_text


@pytest.mark.parametrize("hop", [2, None])
def test_a_gif_lasts_ten_seconds_at_most(scene: Scene, hop: int | None):
    from layouts.svg.raster import to_gif

    with Image.open(io.BytesIO(to_gif(scene, hop))) as image:
        seconds = 0
        for frame in range(getattr(image, "n_frames", 1)):
            image.seek(frame)
            seconds += image.info["duration"]
    assert 4_000 <= seconds <= 10_000


def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    import sys

    from layouts.svg.raster import to_png

    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ConfigError, match=r"needs resvg; install it: pip install 'tokentrip\[app\]'"):
        to_png(scene)


def test_perfetto_gets_a_slice_a_hop(tmp_path: Path, trip: Trip):
    (path,) = export(tmp_path, "trip.perfetto.json")
    events = json.loads(path.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == len(trip.hops)
    assert all(event["dur"] >= 0 for event in slices)


def test_pictures_that_carry_their_scenario_are_checked(tmp_path: Path):
    paths = export(tmp_path, "trip.anim.svg", "trip.html", "trip.svg")
    words = ["export", "--check", *map(str, paths)]
    assert CliRunner().invoke(tokentrip, words).exit_code == 0
    text = paths[0].read_text()
    paths[0].write_text(text.replace("Dispatch to 2 experts", "Dispatch to 3 experts"))
    done = CliRunner().invoke(tokentrip, words)
    assert done.exit_code == 1
    assert "edited after it was exported" in done.output


@pytest.mark.parametrize("ending", sorted(FORMATS))
def test_a_file_is_written_the_same_twice(ending: str, trip: Trip):
    write = format_of(Path(f"trip{ending}"))
    hop = 2 if ending == ".gif" else None
    trips = Trips.of(trip)
    assert write(trips, hop) == write(trips, hop)

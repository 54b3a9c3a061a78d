"""Exported files in a browser: the picture that plays in an image, the page without a network, Mermaid."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from app.exports.formats import FORMATS
from layouts.compose.scene_of_trip import build_scene
from layouts.scene.palette import DARK, LIGHT
from layouts.scene.scene import Scene
from layouts.svg.map import MARGIN, TITLE_HEIGHT
from tests.browser.conftest import _watch
from tracer.scenario.files import load_scenario
from tracer.trip.trip import Trip, take_trip
from tracer.trip.trips import Trips

MERMAID = Path(__file__).parents[2] / ".tools" / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def trip() -> Trip:
    return take_trip(load_scenario("six-cuts"))


def rgb(text: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(text[1:]))


def image_page(page: Page, trip: Trip, folder: Path, hop: int | None = None) -> None:
    (folder / "trip.anim.svg").write_text(str(FORMATS[".anim.svg"](Trips.of(trip), hop)))
    (folder / "page.html").write_text('<body style="margin:0"><img src="trip.anim.svg" alt=""></body>')
    page.goto((folder / "page.html").as_uri())


def gpus_with_the_token(page: Page, scene: Scene, token: tuple[int, ...]) -> set[int]:
    """Ranks whose boxes show the token's colour in a screenshot taken now."""
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    found = set()
    for rank, box in scene.gpu_boxes().items():
        x, y = int(box.x + MARGIN), int(box.y + TITLE_HEIGHT)
        inside = shot.crop((x + 4, y + 4, x + int(box.width) - 4, y + int(box.height) - 4))
        if token in {colour for _, colour in inside.getcolors(1 << 20)}:
            found.add(rank)
    return found


def wait_for(look: Callable[[], set[int]], wanted: set[int]) -> list[set[int]]:
    """Look until what is wanted is there; everything seen on the way."""
    seen: list[set[int]] = []
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        seen.append(look())
        if seen[-1] == wanted:
            return seen
    pytest.fail(f"never saw the token on {sorted(wanted)}, but on {seen}")


def test_the_picture_plays_inside_an_image(
    page: Page, trip: Trip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # A slow machine takes a screenshot in seconds; the hop rests long enough to be seen.
    monkeypatch.setattr("layouts.animation.clockwork.FIRST_S", 8.0)
    monkeypatch.setattr("layouts.animation.clockwork.END_S", 8.0)
    scene = build_scene(trip)
    image_page(page, trip, tmp_path, hop=4)

    def look() -> set[int]:
        return gpus_with_the_token(page, scene, rgb(LIGHT["token"]))

    # Layer 1's dispatch: a copy at expert 5 on GPU 2, through GPU 3, and one at expert 27 on GPU 13.
    wait_for(look, {2, 3, 11, 13})
    wait_for(look, {11})


def test_the_whole_trip_moves_the_token_to_the_other_stage(page: Page, trip: Trip, tmp_path: Path):
    scene = build_scene(trip)
    image_page(page, trip, tmp_path)
    seen: list[set[int]] = []
    deadline = time.monotonic() + 2 * PATIENCE_S
    while time.monotonic() < deadline and not (
        any(11 in each for each in seen) and any(27 in each for each in seen)
    ):
        seen.append(gpus_with_the_token(page, scene, rgb(LIGHT["token"])))
    possible = [
        {rank for rank, _ in before.marks.dots + hop.marks.dots}
        | {rank for move in hop.moves for rank in (move.source, move.destination)}
        for before, hop in zip(scene.hops, scene.hops[1:], strict=False)
    ]
    assert all(any(each <= ranks for ranks in possible) for each in seen), seen
    assert any(11 in each for each in seen)
    assert any(27 in each for each in seen), seen


def test_the_picture_is_dark_where_the_system_is(browser: Browser, trip: Trip, tmp_path: Path):
    for scheme, colours in (("light", LIGHT), ("dark", DARK)):
        with browser.new_context(color_scheme=scheme) as context:  # type: ignore[arg-type]
            page = context.new_page()
            image_page(page, trip, tmp_path)
            shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            assert shot.getpixel((2, 2)) == rgb(colours["page"])


def test_the_page_plays_with_the_network_off(
    browser: Browser, console_errors: list[str], trip: Trip, tmp_path: Path
):
    (tmp_path / "trip.html").write_text(str(FORMATS[".html"](Trips.of(trip), None)))
    with browser.new_context(offline=True) as context:
        page = context.new_page()
        _watch(page, console_errors)
        page.goto((tmp_path / "trip.html").as_uri() + "#hop=40")
        expect(page.locator(".hop-number")).to_have_text("hop 40 of 41")
        page.get_by_role("button", name="Play").click()
        expect(page.locator(".hop-number")).to_have_text("hop 41 of 41")
        expect(page.locator('[data-count="crossings"]')).to_have_text("15")
        expect(page.get_by_role("button", name="Play")).to_be_visible()
        page.keyboard.press("Home")
        expect(page.locator('[data-count="gpus"]')).to_have_text("1")


@pytest.mark.parametrize("ending", [".mmd", ".seq.mmd"])
@pytest.mark.parametrize("preset", ["six-cuts", "six-cuts-decode", "mixtral-8x7b-ep8"])
def test_mermaid_parses_its_own_language(page: Page, preset: str, ending: str):
    if not MERMAID.exists():
        reason = "no mermaid: sh scripts/ensure_mermaid.sh fetches it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    page.add_script_tag(path=str(MERMAID))
    text = str(FORMATS[ending](Trips.of(take_trip(load_scenario(preset))), None))
    drawn = page.evaluate("async (text) => (await mermaid.render('trip', text)).svg", text)
    assert drawn.startswith("<svg")
    assert "syntax error" not in drawn.lower()


def test_mermaid_refuses_what_is_no_mermaid(page: Page):
    if not MERMAID.exists():
        pytest.skip("no mermaid: sh scripts/ensure_mermaid.sh fetches it")
    page.add_script_tag(path=str(MERMAID))
    refused = page.evaluate("mermaid.parse('flowchart ][').then(() => '', (error) => String(error))")
    assert "error on line 1" in refused

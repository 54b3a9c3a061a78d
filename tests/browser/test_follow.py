"""Several tokens on the trip page: they play together, and each one's own trip is a click away."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect

from layouts import Scene, build_scene
from layouts.scene.token_tags import kv_at, kv_tags, token_tags, tokens_after
from tests.browser.axe import serious_problems, sticks_out_or_is_small
from tracer import load_scenario
from tracer.display import format_bytes
from tracer.trip.trips import Trips, take_trips

NAMES = "0,5,9,63,3:40"


@pytest.fixture(scope="module")
def trips() -> Trips:
    return take_trips(load_scenario("six-cuts"), [0, 5, 9, 63, (3, 40)])


@pytest.fixture(scope="module")
def scene(trips: Trips) -> Scene:
    return build_scene(trips)


def open_page(page: Page, url: str, query: str) -> None:
    page.goto(url + query)
    expect(page.locator(".hop-panel h2")).to_be_visible()


def tags_on_map(page: Page) -> list[str]:
    return sorted(page.locator(".map-frame .tag text").all_text_contents())


def tags_of(scene: Scene, hop: int) -> list[str]:
    standing, kept = tokens_after(scene.hops[hop]).values(), kv_at(scene, hop).values()
    dots = [tag.text for held in standing for tag in token_tags(held, numbered=True)]
    return sorted(dots + [tag.text for held in kept for tag in kv_tags(*held, numbered=True)])


def test_tokens_typed_into_the_field_play_together(
    page: Page, explorer_url: str, trips: Trips, scene: Scene
) -> None:
    page.emulate_media(reduced_motion="reduce")
    open_page(page, explorer_url, "")
    page.locator(".drawer summary").click()
    field = page.get_by_label("Follow several tokens")
    field.fill(NAMES)
    field.press("Enter")
    expect(page.locator(".tokens h2")).to_have_text("5 tokens")
    assert parse_qs(urlparse(page.url).query)["follow"] == [NAMES]
    last = len(trips.steps) - 1
    for hop in (0, 2, 4, 21, last):
        page.locator(f".cell[data-hop='{hop}']").click()
        expect(page.locator(".hop-number")).to_have_text(f"hop {hop} of {last}")
        tally, takers = trips.tallies[hop], len(trips.steps[hop].tokens)
        names = ("gpus", "crossings", "takers", "bytes")
        shown = [page.locator(f"[data-count={name}]").inner_text() for name in names]
        counts = (tally.gpus_touched, tally.node_crossings, takers)
        assert shown == [*map(str, counts), format_bytes(tally.bytes)]
        assert tags_on_map(page) == tags_of(scene, hop)
        rows = page.locator(".hop-panel tbody th").all_text_contents()
        assert rows == [f"{move.source} → {move.destination}" for move in scene.hops[hop].moves]
    page.locator(".cell[data-hop='4']").click()
    expect(page.locator(".meetings li").first).to_contain_text("GPU ")
    expect(page.locator(".link.busy")).to_have_count(1)
    assert page.get_by_label("Who meets on which GPU").locator("li").count() == len(trips.steps[4].meetings)
    page.locator("summary", has_text="Where they are").click()
    places = page.get_by_label("Which tokens are on which GPU").locator("li").all_text_contents()
    held = sorted(tokens_after(scene.hops[4]))
    assert [line.split(":")[0] for line in places] == [f"GPU {gpu}" for gpu in held]
    row = page.locator(".tokens tbody tr[data-token='4']")
    log = trips.trips[4].log
    cells = [3, 40, 15, log.gpus_touched, log.node_crossings, log.comm_ops, format_bytes(log.bytes)]
    assert row.locator("td").all_text_contents() == [str(cell) for cell in cells]
    row.get_by_role("link", name="Token 4, its own trip").click()
    expect(page.locator(".hop-panel h2")).to_have_text("Land on GPU 15")
    page.keyboard.press("End")
    expect(page.locator("[data-count=crossings]")).to_have_text(str(log.node_crossings))
    expect(page.locator("[data-count=bytes]")).to_have_text(format_bytes(log.bytes))


def test_refused_tokens_are_told_beside_the_field_and_mended_there(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url, "?follow=0,99&speed=8")
    field = page.get_by_label("Follow several tokens")
    expect(page.locator("#follow-error")).to_contain_text("must lie in the prompt of 64; try 0 to 63")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("0,99")
    expect(page.locator(".hop-panel h2")).to_have_text("Land on GPU 11")
    field.fill("0-1")
    field.press("Enter")
    expect(page.locator("#follow-error")).to_have_count(0)
    expect(page.locator(".tokens h2")).to_have_text("2 tokens")
    expect(field).to_be_focused()
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".hop-number")).to_have_text("hop 41 of 41", timeout=60_000)
    page.locator(".drawer summary").click()
    page.get_by_role("button", name="Follow one").click()
    expect(page.locator(".tokens")).to_have_count(0)
    assert "follow" not in parse_qs(urlparse(page.url).query)
    field.fill("3:5")
    field.press("Enter")
    expect(page.get_by_label("Position")).to_have_value("5")
    asked = parse_qs(urlparse(page.url).query)
    assert (asked["token.replica"], asked["token.position"]) == (["3"], ["5"])
    assert "follow" not in asked
    alone = take_trips(load_scenario("six-cuts"), [(3, 5)]).trips[0]
    page.locator(".cell").last.click()
    expect(page.locator("[data-count=bytes]")).to_have_text(format_bytes(alone.log.bytes))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_the_page_is_for_everyone(page: Page, explorer_url: str, scheme: str, width: int) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 800})
    open_page(page, explorer_url, "?follow=0-63,3:0-63&hop=4")
    page.wait_for_timeout(300)
    assert serious_problems(page) == []
    assert sticks_out_or_is_small(page) == []
    outside = """[...document.querySelectorAll('.map-frame .tag')].filter(tag => {
        const [rect, text] = [...tag.children].map(e => e.getBoundingClientRect());
        return text.width > rect.width + 1; }).length"""
    assert page.evaluate(outside) == 0

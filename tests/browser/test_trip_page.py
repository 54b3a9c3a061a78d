"""The trip page in Chromium: it plays the trip the engine took, by mouse, keys and address."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import problems_in_both_schemes, sticks_out_or_is_small
from tracer import Trip, load_scenario, take_trip
from tracer.display import format_bytes

DEEPSEEK = "deepseek-v3-prefill-ep32"


def open_trip(page: Page, url: str, query: str = "") -> None:
    page.goto(url + query)
    expect(page.locator(".hop-panel h2")).to_be_visible()


def counts(page: Page) -> dict[str, str]:
    return {
        name: page.locator(f"[data-count={name}]").inner_text()
        for name in ("gpus", "crossings", "ops", "bytes")
    }


def counts_after(trip: Trip, hop: int) -> dict[str, str]:
    tally = trip.tallies[hop]
    return {
        "gpus": f"{tally.gpus_touched:,}",
        "crossings": f"{tally.node_crossings:,}",
        "ops": f"{tally.comm_ops:,}",
        "bytes": format_bytes(tally.bytes),
    }


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


def test_it_plays_to_the_end_and_counts_as_the_engine(page: Page, explorer_url: str) -> None:
    trip = take_trip(load_scenario("six-cuts"))
    open_trip(page, explorer_url, "?speed=8")
    assert counts(page) == counts_after(trip, 0)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator(".hop-number")).to_have_text("hop 41 of 41", timeout=60_000)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    log = trip.log
    assert counts(page) == {
        "gpus": str(log.gpus_touched),
        "crossings": str(log.node_crossings),
        "ops": str(log.comm_ops),
        "bytes": format_bytes(log.bytes),
    }


@pytest.mark.parametrize("name", ["six-cuts", DEEPSEEK, "six-cuts-pp-inside-dp"])
def test_every_hop_shows_the_engines_counts_and_transfers(page: Page, explorer_url: str, name: str) -> None:
    trip = take_trip(load_scenario(name))
    open_trip(page, explorer_url, f"?scenario={name}")
    page.emulate_media(reduced_motion="reduce")
    for hop in range(0, len(trip.hops), max(1, len(trip.hops) // 12)):
        page.locator(f".cell[data-hop='{hop}']").click()
        expect(page.locator(".hop-number")).to_have_text(f"hop {hop} of {len(trip.hops) - 1}")
        assert counts(page) == counts_after(trip, hop)
        shown = page.locator(".hop-panel tbody th").all_text_contents()
        assert shown == [f"{t.src} → {t.dst}" for t in trip.hops[hop].transfers]


def test_keys_step_scrub_and_play(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url)
    number = page.locator(".hop-number")
    page.keyboard.press("ArrowRight")
    expect(number).to_have_text("hop 1 of 41")
    page.keyboard.press("End")
    expect(number).to_have_text("hop 41 of 41")
    page.keyboard.press("ArrowLeft")
    expect(number).to_have_text("hop 40 of 41")
    page.keyboard.press("Home")
    expect(number).to_have_text("hop 0 of 41")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(number).not_to_have_text("hop 0 of 41")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_buttons_and_scrubber_move_the_trip(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url)
    number = page.locator(".hop-number")
    page.get_by_role("button", name="Next hop").click()
    expect(number).to_have_text("hop 1 of 41")
    page.get_by_role("slider", name="Hop").fill("21")
    expect(number).to_have_text("hop 21 of 41")
    expect(page.locator(".hop-panel h2")).to_have_text("Send to stage 1")
    page.get_by_role("button", name="Previous hop").click()
    expect(number).to_have_text("hop 20 of 41")


def test_the_address_holds_the_hop_and_opens_it_elsewhere(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url)
    page.locator(".cell[data-hop='4']").click()
    page.wait_for_url(re.compile("hop=4"))
    open_trip(page, explorer_url, "?" + urlparse(page.url).query)
    expect(page.locator(".hop-number")).to_have_text("hop 4 of 41")
    expect(page.locator(".hop-panel h2")).to_have_text("Dispatch to 2 experts")


def test_another_scenario_and_token_are_asked_of_the_engine(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url)
    page.get_by_label("Scenario").select_option(DEEPSEEK)
    trip = take_trip(load_scenario(DEEPSEEK))
    expect(page.locator(".hop-number")).to_have_text(f"hop 0 of {len(trip.hops) - 1}")
    assert query_of(page)["scenario"] == [DEEPSEEK]
    page.locator(".drawer summary").click()
    page.get_by_label("Position").fill("5")
    page.get_by_label("Position").press("Enter")
    expect(page.locator(".what")).to_contain_text("Position 5 of a prompt of 4,096")
    page.get_by_label("Replica").fill("0")
    page.get_by_label("Replica").press("Enter")
    expect(page.locator(".hop-panel h2")).to_have_text("Land on GPU 0")
    assert query_of(page)["token.position"] == ["5"]


def test_picks_are_rolled_again(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?hop=4")
    before = page.locator(".what").inner_text()
    page.locator(".drawer summary").click()
    page.get_by_role("button", name="Re-roll picks").click()
    expect(page.locator(".what")).not_to_have_text(before)
    expect(page.locator(".hop-number")).to_have_text("hop 4 of 41")
    assert query_of(page)["seed"] == ["1"]


def test_a_gpus_card_lights_its_groups_and_routes_the_next_pick_there(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?hop=3")
    page.locator(".gpu[data-rank='7']").click()
    card = page.locator(".gpu-card")
    expect(card.locator("h2")).to_have_text("GPU 7")
    expect(card).to_contain_text("node 0, rail 7 · tp 1 · cp 1 · dp 1 · pp 0")
    card.get_by_role("button", name="ep group").click()
    expect(page.locator(".lit-box")).to_have_count(16)
    card.get_by_role("button", name="tp group").click()
    expect(page.locator(".lit-box")).to_have_count(2)
    card.get_by_role("button", name="Route layer 1").click()
    # The new way is seen at once: the dispatch plays from the hop before it.
    expect(page.locator(".hop-panel tbody")).to_contain_text("3 → 7")
    expect(page.locator(".hop-number")).to_have_text("hop 4 of 41")
    assert query_of(page)["picks.1"] == ["14,27"]


def test_the_map_answers_to_keys(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url)
    page.locator(".gpu[data-rank='11']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".gpu-tip b")).to_have_text("GPU 4")
    page.keyboard.press("Enter")
    expect(page.locator(".gpu-card h2")).to_have_text("GPU 4")
    page.get_by_role("button", name="Close GPU card").click()
    expect(page.locator(".gpu-card")).to_be_hidden()
    expect(page.locator(".hop-number")).to_have_text("hop 0 of 41")


def test_a_prediction_is_marked(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?hop=3")
    predict = page.locator(".predict")
    expect(predict).to_contain_text("How many copies cross to another node?")
    predict.get_by_role("button", name="1", exact=True).click()
    expect(predict.locator(".verdict")).to_contain_text("Right: 1.")
    expect(page.locator(".hop-number")).to_have_text("hop 4 of 41")
    predict.get_by_role("button", name="3", exact=True).click()
    expect(predict.locator(".verdict")).to_contain_text("Not quite: it is 1.")


def test_wrong_addresses_say_what_would_work(page: Page, explorer_url: str) -> None:
    page.goto(explorer_url + "?mesh.ep=3")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("must divide the stage's 16 ranks")
    expect(alert).to_contain_text("try 2, 4, 8 or 16")
    alert.get_by_role("button", name="Back to six-cuts").click()
    expect(page.locator(".hop-panel h2")).to_have_text("Land on GPU 11")


@pytest.mark.parametrize("dp", [4, 128, 512, 131_072])
def test_meshes_of_any_size_open_and_play(page: Page, explorer_url: str, dp: int) -> None:
    open_trip(page, explorer_url, f"?speed=8&mesh.pp=1&mesh.dp={dp}&mesh.ep=8&cluster.nodes=&token.replica=0")
    expect(page.locator(".counters")).to_contain_text(f"of {4 * dp:,} GPUs")
    page.keyboard.press("Space")
    expect(page.locator(".hop-number")).to_have_text("hop 40 of 40", timeout=60_000)


@pytest.mark.parametrize("query", ["?hop=4", f"?scenario={DEEPSEEK}&hop=5", "?hop=4&rank=7", "?mesh.ep=3"])
def test_axe_finds_nothing_serious(page: Page, explorer_url: str, query: str) -> None:
    page.goto(explorer_url + query)
    expect(page.locator(".hop-panel h2, .alert p").first).to_be_visible()
    assert problems_in_both_schemes(page) == []


@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_nothing_sticks_out_of_the_page(page: Page, explorer_url: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    open_trip(page, explorer_url, "?hop=4")
    assert sticks_out_or_is_small(page) == []

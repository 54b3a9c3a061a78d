"""The map in Chromium: everything a hop moves is in the window, and wheel, keys and fingers move the view."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PLAYED
from tracer import preset_names

SIZES = ((1440, 900), (390, 844))
MILLION = "?mesh.dp=131072&cluster.nodes=&picks="
SAMPLED = 11
# Of a few hops: marks that are not inside the map's frame and above the dock, and words that lie on words.
LOOK = """(sampled) => {
  const frame = document.querySelector('.map-frame').getBoundingClientRect();
  const dock = document.querySelector('.dock').getBoundingClientRect();
  const bottom = Math.min(frame.bottom, dock.top, innerHeight);
  const cells = document.querySelectorAll('.cell');
  const found = { hidden: [], overlaps: [], marks: 0, words: 0 };
  const step = Math.max(1, Math.floor(cells.length / sampled));
  for (let hop = 1; hop < cells.length; hop += step) {
    cells[hop].click();
    const marks = document.querySelectorAll(
      '.marks .link, .marks .head, .marks .dot, .marks .kv, .marks .caption, .gpu.active rect');
    for (const mark of marks) {
      const box = mark.getBoundingClientRect();
      const inside = box.top >= frame.top - 1 && box.bottom <= bottom + 1 &&
        box.left >= frame.left - 1 && box.right <= frame.right + 1;
      if (!inside) found.hidden.push([hop, mark.getAttribute('class')]);
    }
    found.marks += marks.length;
    const words = [...document.querySelectorAll('.map-base text, .marks .caption, .marks text.relay')]
      .map(each => [each.textContent, each.getBoundingClientRect()]);
    found.words += words.length;
    words.forEach(([text, a], i) => {
      for (const [other, b] of words.slice(i + 1)) {
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) {
          found.overlaps.push([hop, text, other]);
        }
      }
    });
  }
  return found;
}"""
SHIFTS = """window.shifts = 0;
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value;
}).observe({ type: 'layout-shift', buffered: true });"""
ZOOM = "(() => { const box = document.querySelector('.map-base').getAttribute('viewBox').split(' ');" + (
    "return document.querySelector('.map-frame').clientWidth / Number(box[2]); })()"
)


def open_trip(page: Page, url: str, query: str = "") -> None:
    page.goto(url + query)
    expect(page.locator(".hop-panel h2")).to_be_visible()
    expect(page.locator(".map-base .gpu").first).to_be_visible()


def zoom(page: Page) -> float:
    return float(page.evaluate(ZOOM))


@pytest.mark.parametrize("size", SIZES)
def test_all_that_a_hop_moves_is_seen_and_no_words_lie_on_each_other(
    page: Page, explorer_url: str, size: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(reduced_motion="reduce")
    for query in (*(f"?scenario={name}" for name in preset_names()), MILLION):
        open_trip(page, explorer_url, query)
        found: dict[str, Any] = page.evaluate(LOOK, SAMPLED)
        assert found["marks"] > SAMPLED, query
        assert found["words"] > SAMPLED, query
        assert (found["hidden"], found["overlaps"]) == ([], []), query


def test_the_first_layer_plays_once_and_nothing_shifts(
    browser: Browser, console_errors: list[str], explorer_url: str
) -> None:
    with browser.new_context(viewport={"width": 1440, "height": 900}, bypass_csp=True) as context:
        context.add_init_script(SHIFTS)
        page = context.new_page()
        open_trip(page, explorer_url)
        expect(page.get_by_role("heading", level=1)).to_have_text("One token, 32 GPUs, 15 slow crossings")
        expect(page.locator(".caption").first).to_be_visible()
        expect(page.locator(".invite")).to_contain_text("Now yours", timeout=30_000)
        expect(page.locator(".hop-number")).to_have_text("hop 5 of 41")
        assert page.evaluate("window.shifts") < 0.05
        page.reload()
        expect(page.locator(".hop-panel h2")).to_be_visible()
        page.wait_for_timeout(1_500)
        expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_less_motion_shows_where_a_hop_ends(
    browser: Browser, console_errors: list[str], explorer_url: str
) -> None:
    options: dict[str, Any] = {"reduced_motion": "reduce", "bypass_csp": True}
    with browser.new_context(viewport={"width": 1440, "height": 900}, **options) as context:
        page = context.new_page()
        open_trip(page, explorer_url)
        page.wait_for_timeout(1_200)
        expect(page.locator(".hop-number")).to_have_text("hop 0 of 41")
        page.keyboard.press("ArrowRight")
        assert page.locator(".movers > *").count() == 0
        assert page.locator(".marks .link").count() == 1
        assert page.locator(".marks .head").count() == 1


def test_wheel_and_keys_come_closer_and_the_view_stays_from_hop_to_hop(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?hop=3")
    frame = page.locator(".map-frame").bounding_box()
    assert frame is not None
    assert zoom(page) == pytest.approx(1, abs=0.01)
    page.mouse.move(frame["x"] + 200, frame["y"] + 200)
    page.mouse.wheel(0, -600)
    page.wait_for_timeout(100)
    closer = zoom(page)
    assert closer > 1.5
    page.keyboard.press("ArrowRight")
    expect(page.locator(".hop-number")).to_have_text("hop 4 of 41")
    assert zoom(page) == pytest.approx(closer, rel=0.01)
    before = page.locator(".map-base").get_attribute("viewBox")
    page.mouse.down()
    page.mouse.move(frame["x"] + 120, frame["y"] + 150, steps=4)
    page.mouse.up()
    assert page.locator(".map-base").get_attribute("viewBox") != before
    expect(page.locator(".gpu-card")).to_be_hidden()
    page.get_by_role("button", name="Fit").click()
    assert zoom(page) == pytest.approx(1, abs=0.01)


def test_keys_walk_open_and_climb(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?scenario=deepseek-v3-decode-ep144&hop=1")
    page.locator(".gpu[data-rank='11']").focus()
    page.keyboard.press("+")
    assert zoom(page) > 1.2
    page.keyboard.press("f")
    assert zoom(page) == pytest.approx(1, abs=0.01)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    card = page.locator(".gpu-card")
    expect(card.locator("h2")).to_have_text("GPU 10")
    expect(page.locator(".trail")).to_have_text("cluster › node 1 › GPU 10")
    expect(card.locator(".inside-bar")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Open node 0"
    page.keyboard.press("Enter")
    expect(page.locator(".gpu[data-rank='0']")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".gpu[data-rank='0']")).to_have_count(0)


def test_levels_and_closed_rows_open_by_a_click(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?scenario=deepseek-v3-decode-ep144&hop=1")
    page.get_by_role("button", name="Cluster", exact=True).click()
    expect(page.locator(".row.closed")).to_have_count(18)
    page.locator(".row.closed[data-name='node 4']").click()
    expect(page.locator(".gpu[data-rank='32']")).to_be_visible()
    page.get_by_role("button", name="Nodes", exact=True).click()
    expect(page.locator(".gpu[data-rank='32']")).to_have_count(0)
    page.get_by_role("button", name="GPU", exact=True).click()
    expect(page.locator(".gpu-card h2")).to_have_text("GPU 11")
    expect(page.locator(".gpu-card .own-moves")).to_contain_text("922 of the token")


def test_an_opened_gpu_shows_its_slice_of_the_arrays(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?hop=1&rank=10")
    page.locator(".gpu-card summary", has_text="slice of the arrays").click()
    rows = page.locator(".gpu-card .numbers tbody th")
    expect(rows.first).to_contain_text("GPU 10")
    assert all(text.startswith("GPU 10") for text in rows.all_text_contents())


def test_escape_and_back_lead_one_step_back(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?hop=4&rank=3")
    page.locator(".menu summary").click()
    expect(page.locator(".menu-list")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".menu-list")).to_be_hidden()
    expect(page.locator(".gpu-card")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".gpu-card")).to_be_hidden()
    page.get_by_label("Scenario").select_option("mixtral-8x7b-ep8")
    expect(page.get_by_role("heading", level=1)).to_contain_text("8 GPUs")
    page.get_by_label("Scenario").select_option("qwen3-235b")
    expect(page.get_by_role("heading", level=1)).to_contain_text("16 GPUs")
    page.go_back()
    expect(page.get_by_label("Scenario")).to_have_value("mixtral-8x7b-ep8")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("32 GPUs")


def test_a_changed_preset_is_not_called_by_its_name_alone(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?mesh.pp=1&mesh.dp=8")
    expect(page.get_by_label("Scenario").locator("option:checked")).to_have_text("six-cuts, changed")
    expect(page.locator(".subtitle")).to_contain_text("six-cuts, changed")


def test_a_size_keeps_the_number_of_gpus_and_says_what_follows(page: Page, explorer_url: str) -> None:
    page.goto(explorer_url + "mesh?scenario=deepseek-v3-ep64")
    expect(page.locator(".mesh-verdict h2")).to_contain_text("64 GPUs")
    page.get_by_label("PP", exact=True).fill("2")
    expect(page.locator(".mesh-verdict h2")).to_contain_text("dp32 pp2")
    expect(page.locator(".mesh-verdict h2")).to_contain_text("64 GPUs")
    expect(page.locator(".follows")).to_contain_text("PP 2: DP 64 → 32 keeps 64 GPUs; EP 64 → 32")
    page.get_by_label("TP", exact=True).fill("3")
    expect(page.locator(".follows")).to_contain_text("cannot keep the number of GPUs: take 1, 2, 4")
    expect(page.locator(".map-base .gpu").first).to_be_visible()


def test_a_phone_has_one_line_of_header_and_a_fixed_dock(
    browser: Browser, console_errors: list[str], explorer_url: str
) -> None:
    options: dict[str, Any] = {"has_touch": True, "is_mobile": True, "bypass_csp": True}
    with browser.new_context(viewport={"width": 390, "height": 844}, **options) as context:
        context.add_init_script(PLAYED)
        page = context.new_page()
        open_trip(page, explorer_url, "?hop=4")
        boxes = {
            name: page.locator(name).bounding_box() for name in (".top", "h1", ".hop-caption", ".map-frame")
        }
        tops = [box["y"] for box in boxes.values() if box]
        assert tops == sorted(tops)
        assert len(tops) == 4
        assert boxes[".top"] is not None
        assert boxes[".top"]["height"] <= 50
        for name in ("Previous hop", "Play", "Next hop"):
            button = page.get_by_role("button", name=name).bounding_box()
            assert button is not None
            assert (button["width"], button["height"]) == (44, 44)
            assert button["y"] + button["height"] <= 844
        assert page.locator(".counters").bounding_box()["y"] < 720  # type: ignore[index]
        swipe(page, -120)
        expect(page.locator(".hop-number")).to_have_text("hop 5 of 41")
        swipe(page, 120)
        expect(page.locator(".hop-number")).to_have_text("hop 4 of 41")


def swipe(page: Page, across: int) -> None:
    """A finger on the map, from its middle to one side."""
    script = """across => {
      const frame = document.querySelector('.map-frame');
      const { left, top, width, height } = frame.getBoundingClientRect();
      const at = (x, type) => frame.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 5,
        pointerType: 'touch', clientX: left + width / 2 + x, clientY: top + height / 2 }));
      at(0, 'pointerdown');
      at(across / 2, 'pointermove');
      at(across, 'pointerup');
    }"""
    page.evaluate(script, across)


def test_print_shows_the_map_first(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?hop=4")
    page.emulate_media(media="print")
    box = page.locator(".map-frame").bounding_box()
    assert box is not None
    assert box["y"] < 260
    assert page.locator(".dock").is_hidden()
    assert page.locator(".one-box textarea").is_hidden()


def test_a_slow_speed_travels_slowly_too(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?hop=3&speed=0.25")
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(1_400)
    # At this speed InfiniBand alone takes 1.4 s, and the relay forwards after it.
    assert page.locator(".movers > *").count() > 0
    expect(page.locator(".movers > *")).to_have_count(0, timeout=5_000)


def test_several_tokens_fit_the_boxes(page: Page, explorer_url: str) -> None:
    open_trip(page, explorer_url, "?follow=0,5,9,63,3:40&hop=4")
    expect(page.locator(".hop-number")).to_have_text(re.compile("hop 4 of"))
    outside = """[...document.querySelectorAll('.marks .tag rect')].filter(tag => {
      const box = tag.getBoundingClientRect();
      return ![...document.querySelectorAll('.gpu rect')].some(each => {
        const gpu = each.getBoundingClientRect();
        return box.left >= gpu.left - 2 && box.right <= gpu.right + 2 && box.top >= gpu.top - 2 &&
          box.bottom <= gpu.bottom + 2; });
    }).length"""
    assert page.evaluate(outside) == 0

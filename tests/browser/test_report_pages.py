"""Traffic, Batch, Time, Roofline and Decode in Chromium: what they show is what the engine says."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import serious_problems
from tracer import load_scenario
from tracer.expected_traffic import expected_traffic, with_tokens
from tracer.orders import rank_orders, with_order
from tracer.traffic_text import format_seconds, traffic_rows
from tracer.trip_text import format_bytes


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query, keep_blank_values=True)


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".report.ready")).to_be_visible()


def table(page: Page, caption: str) -> Locator:
    return page.get_by_role("region", name=caption, exact=True).locator("tbody tr")


def cells(page: Page, caption: str) -> list[list[str]]:
    read = "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    found: list[list[str]] = table(page, caption).evaluate_all(read)
    return found


def figure(page: Page, label: str) -> Locator:
    return page.locator(".counter", has_text=label).locator("dd")


def expect_drawn(page: Page) -> None:
    """Every chart of the page has a name and is drawn."""
    charts = page.locator(".chart")
    expect(page.locator(".chart.drawn")).to_have_count(charts.count())
    for element in charts.all():
        assert element.get_attribute("aria-label")


def test_traffic_shows_every_axis_and_order(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "traffic")
    scenario = load_scenario("six-cuts")
    traffic, orders = expected_traffic(scenario), rank_orders(scenario)
    expect(figure(page, "over InfiniBand")).to_have_text(format_bytes(round(traffic.ib_bytes_per_pass)))
    assert [row[2:] for row in cells(page, "What each axis sends")] == [r[3:] for r in traffic_rows(traffic)]
    assert [row[1] for row in cells(page, "Every order")] == [entry.order for entry in orders.ranked]
    expect_drawn(page)


def test_two_orders_stand_beside_each_other(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "traffic")
    page.get_by_label("Tokens a replica").fill("4096")
    page.get_by_label("Tokens a replica").press("Enter")
    expect(page.get_by_text("T = 4,096 padded tokens")).to_be_visible()
    page.get_by_label("Beside another order").select_option("tp-cp-pp-dp")
    scenario = with_tokens(load_scenario("six-cuts"), 4096)
    pair = [expected_traffic(each) for each in (scenario, with_order(scenario, "tp-cp-pp-dp"))]
    expect(table(page, "Two orders").nth(2).locator("td")).to_have_text(
        [format_seconds(each.seconds_per_pass) for each in pair]
    )
    assert query_of(page)["against"] == ["tp-cp-pp-dp"]
    page.reload()
    expect(table(page, "Two orders").first).to_be_visible()


def test_what_is_wrong_is_said_in_place(page: Page, explorer_url: str) -> None:
    open_page(page, explorer_url + "traffic?tokens=0")
    expect(page.get_by_role("alert")).to_contain_text("must be a whole number from 1")
    page.get_by_role("button", name="Start over").click()
    expect(figure(page, "over InfiniBand")).to_be_visible()


PAGES = ["traffic"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious(page: Page, explorer_url: str, scheme: str, path: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    open_page(page, explorer_url + path)
    expect_drawn(page)
    assert serious_problems(page) == []


@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
@pytest.mark.parametrize("path", PAGES)
def test_nothing_sticks_out_and_nothing_is_small(
    page: Page, explorer_url: str, width: int, path: str
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    open_page(page, explorer_url + path)
    expect_drawn(page)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    small = "[...document.querySelectorAll('.report text, .report td, .report p')]"
    small += ".filter(each => parseFloat(getComputedStyle(each).fontSize) < 12).length"
    assert page.evaluate(small) == 0

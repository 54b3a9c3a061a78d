"""The header takes the whole scenario from page to page, and back."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

from playwright.sync_api import Page, expect

SCENARIO = {"mesh.ep": ["8"], "cluster.nodes": [""], "token.position": ["3"], "picks.1": ["5,9"]}
ADDRESS = "?mesh.ep=8&cluster.nodes=&token.position=3&picks.1=5,9"


def follow(page: Page, name: str) -> dict[str, list[str]]:
    """Click a page in the header, wait until it has made its own header, and read its address."""
    page.locator(f"#nav-{name.lower()}").click()
    expect(page.locator(f"#nav-{name.lower()}")).to_have_attribute("aria-current", "page")
    expect(page.locator("#nav-trip")).to_have_attribute("href", re.compile("mesh.ep=8"))
    return parse_qs(urlparse(page.url).query, keep_blank_values=True)


def test_a_scenario_goes_along_to_every_page_and_back(page: Page, explorer_url: str) -> None:
    page.goto(explorer_url + ADDRESS + "&hop=4")
    for name in ("Traffic", "Time", "Mesh", "Roofline", "Model", "Batch", "Decode", "Learn"):
        found = follow(page, name)
        assert {key: found.get(key) for key in SCENARIO} == SCENARIO, name
    assert "hop" not in follow(page, "Traffic")
    beside = follow(page, "Compare")
    assert parse_qs(beside["a"][0], keep_blank_values=True).items() >= SCENARIO.items()
    assert beside["b"] == ["scenario=six-cuts"]
    back = follow(page, "Trip")
    assert {key: back.get(key) for key in SCENARIO} == SCENARIO
    expect(page.get_by_label("Position, 0–63")).to_have_value("3")

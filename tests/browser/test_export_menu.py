"""The Trip page's export menu in Chromium: each file is read back, and a refusal is told in the menu."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import networkx
from PIL import Image
from playwright.sync_api import Page, expect

from app.exports.formats import FORMATS, MULTI_TOKEN
from tests.browser.downloads import saved_file
from tracer import load_scenario, take_trip
from tracer.trip.trips import take_trips

SVG = "{http://www.w3.org/2000/svg}"


def open_menu(page: Page, url: str, query: str) -> None:
    page.goto(url + query)
    expect(page.locator(".hop-panel h2")).to_be_visible()
    page.locator(".menu summary").click()


def saved(page: Page, ending: str) -> Path:
    link = page.locator(".menu-list").get_by_role("link", name=ending.removeprefix("."), exact=True)
    return saved_file(page, link, f"six-cuts-trip{ending}")


def text_of(page: Page, ending: str) -> str:
    return saved(page, ending).read_text(encoding="utf-8")


def picture_size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        image.load()
        return image.size


def test_every_file_of_the_menu_reads_back(page: Page, explorer_url: str) -> None:
    trip = take_trip(load_scenario("six-cuts"))
    transfers = sum(len(hop.transfers) for hop in trip.hops)
    open_menu(page, explorer_url, "?hop=4")
    assert page.locator(".menu-list a").all_text_contents() == [ending[1:] for ending in FORMATS]
    for ending in (".svg", ".anim.svg"):
        text = text_of(page, ending)
        assert ElementTree.fromstring(text).tag == f"{SVG}svg"
        assert "Dispatch to 2 experts" in text
    scene = re.search(r'id="scene">(.*?)</script>', text_of(page, ".html"), re.DOTALL)
    assert scene is not None
    assert json.loads(scene[1])["start"] == 4
    assert picture_size(saved(page, ".png"))[0] == 2 * picture_size(saved(page, ".gif"))[0]
    events = json.loads(text_of(page, ".perfetto.json"))["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == len(trip.hops)
    assert json.loads(text_of(page, ".json"))["log"] == trip.log.to_dict()
    rows = list(csv.DictReader(io.StringIO(text_of(page, ".csv"))))
    assert sum(int(row["bytes"] or 0) for row in rows) == trip.log.bytes
    assert sum(bool(row["src"]) for row in rows) == transfers
    starts = {".mmd": "flowchart LR", ".seq.mmd": "sequenceDiagram", ".dot": "digraph trip {"}
    for ending, first in starts.items():
        assert text_of(page, ending).startswith(first)
    graph = networkx.read_graphml(saved(page, ".graphml"))
    assert graph.number_of_edges() == transfers
    page.get_by_label("whole trip, not this hop").check()
    whole = text_of(page, ".anim.svg")
    motions = ElementTree.fromstring(whole).iter(f"{SVG}animateMotion")
    assert sum(len(each.get("begin", "").split(";")) for each in motions) == transfers


def test_files_of_several_tokens_and_a_refusal(
    page: Page, explorer_url: str, console_errors: list[str]
) -> None:
    trips = take_trips(load_scenario("six-cuts"), [0, 5])
    open_menu(page, explorer_url, "?follow=0,5&hop=4")
    assert page.locator(".menu-list a").all_text_contents() == [
        each[1:] for each in FORMATS if each in MULTI_TOKEN
    ]
    assert json.loads(text_of(page, ".json")) == json.loads(json.dumps(trips.to_dict()))
    assert "replica 2, position 5" in text_of(page, ".svg")
    open_menu(page, explorer_url, "?scenario=deepseek-v3-prefill-ep32")
    page.locator(".menu-list").get_by_role("link", name="seq.mmd").click()
    expect(page.locator(".menu-problem")).to_contain_text("is over Mermaid's limits")
    expect(page.locator(".hop-panel h2")).to_be_visible()
    assert [error.split()[0] for error in console_errors] == ["400"]
    console_errors.clear()

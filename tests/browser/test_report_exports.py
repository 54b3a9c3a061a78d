"""What a page of figures shows, as files: made under the page's own policy, and read again."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from xml.etree import ElementTree

from PIL import Image
from playwright.sync_api import Page, expect

from app.exports.formats import FORMATS
from app.web.api import BUILDERS
from tests.browser.downloads import saved_file
from tests.browser.test_report_pages import cells, expect_drawn, open_page
from tracer import Scenario, load_scenario, take_trip


def saved(page: Page, name: str) -> bytes:
    """The file of a name in the export menu."""
    menu = page.locator("details.downloads")
    if menu.get_attribute("open") is None:
        menu.locator("summary").click()
    return saved_file(page, menu.get_by_role("button", name=name, exact=True), name).read_bytes()


def table_of(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def test_a_page_of_figures_is_saved_as_it_is_seen(guarded: Page, explorer_url: str) -> None:
    open_page(guarded, explorer_url + "time?micro_batches=4&tokens=4096")
    expect_drawn(guarded)
    query = {"micro_batches": "4", "tokens": "4096"}
    whole = json.loads(saved(guarded, "six-cuts-time.json"))
    assert (whole["page"], whole["query"]) == ("time", query)
    assert whole["blocks"] == json.loads(json.dumps(BUILDERS["time"](query)["blocks"]))
    rows = table_of(saved(guarded, "six-cuts-time-stragglers.csv"))
    assert rows[1:] == cells(guarded, "Stragglers")
    name = "six-cuts-time-the-pipeline-a-row-per-stage"
    picture = ElementTree.fromstring(saved(guarded, name + ".svg"))
    assert "stage 1" in "".join(picture.itertext())
    with Image.open(io.BytesIO(saved(guarded, name + ".png"))) as image:
        box = guarded.get_by_role("img", name="The pipeline, a row per stage").bounding_box()
        assert box is not None
        assert image.size == (round(box["width"]) * 2, round(box["height"]) * 2)
    trace = json.loads(saved(guarded, "six-cuts-time.perfetto.json"))
    assert trace == json.loads(json.dumps(BUILDERS["trace"](query)))
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert names[1:3] == ["two-batch overlap", "pipeline"]
    assert names[3].startswith("DualPipe (training): 2 stages")


def test_mesh_and_compare_are_saved_too(guarded: Page, explorer_url: str) -> None:
    guarded.goto(explorer_url + "mesh?scenario=six-cuts&mesh.ep=8")
    expect(guarded.locator(".mesh-verdict h2")).to_contain_text("ep8")
    scenario = Scenario.from_dict(tomllib.loads(saved(guarded, "six-cuts-mesh.toml").decode()))
    assert scenario.mesh.ep == 8
    log = take_trip(scenario).log
    rows = dict(table_of(saved(guarded, "six-cuts-mesh-counts.csv")))
    assert rows["node crossings"] == str(log.node_crossings)
    ElementTree.fromstring(saved(guarded, "six-cuts-mesh.svg"))
    guarded.goto(explorer_url + "compare")
    expect(guarded.locator(".sides section")).to_have_count(2)
    totals = {row[0]: row[1:] for row in table_of(saved(guarded, "compare-totals.csv"))}
    crossings = [
        str(take_trip(load_scenario(name)).log.node_crossings)
        for name in ("six-cuts", "six-cuts-pp-inside-dp")
    ]
    assert totals["node crossings"] == [*crossings, "true"]
    ElementTree.fromstring(saved(guarded, "compare-b-six-cuts-pp-inside-dp.svg"))
    assert json.loads(saved(guarded, "compare.json"))["sides"][0]["name"] == "six-cuts"


def spoken(payload: dict[str, object]) -> dict[str, object]:
    """What the learn page tells by words."""
    told = {key: value for key, value in payload.items() if key not in ("trip", "chapters", "exports")}
    return json.loads(json.dumps(told))  # type: ignore[no-any-return]


def test_a_chapter_and_the_quiz_are_saved_as_they_stand(guarded: Page, explorer_url: str) -> None:
    guarded.goto(explorer_url + "learn?chapter=relay")
    expect(guarded.locator(".lesson h2")).to_be_visible()
    before = saved(guarded, "learn-relay.svg").decode()
    assert "Dispatch" not in before
    lesson = BUILDERS["learn"]({"chapter": "relay"})
    unanswered = json.loads(saved(guarded, "learn-relay-question.json"))
    assert unanswered["question"] == {key: lesson["question"][key] for key in ("ask", "options")}
    assert not {"after", "reveal", "open", "chosen"} & unanswered.keys()
    guarded.locator(".options button").first.click()
    assert "Dispatch to 2 experts" in saved(guarded, "learn-relay.svg").decode()
    menu = guarded.locator(".menu-list button")
    assert menu.all_text_contents() == ["learn-relay-question.json", *(f"learn-relay{e}" for e in FORMATS)]
    whole = json.loads(saved(guarded, "learn-relay-question.json"))
    assert whole == {
        "page": "learn",
        "query": {"chapter": "relay"},
        "chosen": lesson["question"]["options"][0],
        **spoken(lesson),
    }
    guarded.get_by_label("Chapter").select_option("quiz")
    expect(guarded.locator(".lesson h2")).to_have_text("What happens next?")
    quiz = BUILDERS["quiz"]({})
    guarded.get_by_role("button", name=quiz["question"]["answer"], exact=True).click()
    whole = json.loads(saved(guarded, "learn-quiz-1-question.json"))
    assert whole["chosen"] == whole["question"]["answer"]
    assert whole | spoken(quiz) == whole
    assert Scenario.from_dict(json.loads(saved(guarded, "learn-quiz-1.json"))["scenario"]).name == "quiz"
    guarded.get_by_role("link", name="Open this trip").click()
    expect(guarded.locator(".hop-panel h2")).to_have_text(
        quiz["trip"]["hops"][quiz["reveal"]]["words"]["title"]
    )

"""Mesh, compare and learn in Chromium: what they show is the engine's, and their state is in the address."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect

from app.lessons import CHAPTERS, chapter_payload
from tests.browser.axe import WIDTHS, problems_in_both_schemes
from tracer import Scenario, load_scenario, take_trip

MODELS = Path(__file__).parents[2] / "tracer" / "data" / "models"


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query, keep_blank_values=True)


def open_mesh(page: Page, url: str, query: str = "") -> None:
    page.goto(url + "mesh" + query)
    expect(page.locator(".mesh-verdict h2")).to_be_visible()


def count(page: Page, label: str) -> str:
    return page.locator(".counts tr", has_text=label).locator("td").inner_text()


def test_the_mesh_page_says_what_a_mesh_does(page: Page, explorer_url: str) -> None:
    open_mesh(page, explorer_url)
    log = take_trip(load_scenario("six-cuts")).log
    assert count(page, "GPUs touched") == f"{log.gpus_touched} of {log.world_size}"
    assert count(page, "node crossings") == str(log.node_crossings)
    page.get_by_role("button", name="Move pp inwards").click()
    expect(page.locator(".mesh-verdict h2")).to_contain_text("order tp-cp-pp-dp")
    assert count(page, "node crossings") == "26"
    assert query_of(page)["mesh.order"] == ["tp-cp-pp-dp"]
    page.get_by_role("link", name="Follow its token").click()
    expect(page.locator(".hop-panel h2")).to_have_text("Land on GPU 19")


def test_a_mesh_that_does_not_work_is_mended_by_a_click(page: Page, explorer_url: str) -> None:
    open_mesh(page, explorer_url)
    page.get_by_label("EP", exact=True).fill("3")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("must divide the stage's 16 ranks")
    expect(page.get_by_label("EP", exact=True)).to_have_attribute("aria-invalid", "true")
    alert.get_by_role("button", name="ep = 8").click()
    expect(page.locator(".mesh-verdict h2")).to_contain_text("ep8")
    assert query_of(page)["mesh.ep"] == ["8"]


def test_sizes_models_and_options_are_asked_of_the_engine(page: Page, explorer_url: str) -> None:
    open_mesh(page, explorer_url)
    page.get_by_label("Keep the number of GPUs").uncheck()
    page.get_by_label("DP", exact=True).fill("8")
    expect(page.locator(".mesh-verdict h2")).to_contain_text("64 GPUs")
    expect(page.locator(".follows")).to_have_text("GPUs 32 → 64")
    for group in ("Model", "How it is run"):
        page.locator(".form-group > summary", has_text=group).click()
    page.get_by_label("Sequence parallelism").select_option("off")
    expect(page.locator(".mesh-verdict h2")).to_contain_text("SP off")
    page.locator("label", has_text="Model").locator("select").select_option("qwen3-30b-a3b")
    expect(page.locator("pre")).to_contain_text("qwen3-30b", ignore_case=True)


def test_a_link_to_a_mesh_shows_the_same_elsewhere(page: Page, explorer_url: str) -> None:
    open_mesh(page, explorer_url, "?scenario=six-cuts&mesh.ep=8&mesh.dp=2&cluster.nodes=&token.replica=1")
    expect(page.get_by_label("EP", exact=True)).to_have_value("8")
    expect(page.locator(".mesh-form").get_by_label("Replica", exact=True)).to_have_value("1")
    expect(page.locator(".mesh-verdict h2")).to_contain_text("16 GPUs")


def test_files_good_and_bad_are_sent(page: Page, explorer_url: str, tmp_path: Path) -> None:
    open_mesh(page, explorer_url)
    upload = page.locator("input[type=file]")
    config = json.loads((MODELS / "mixtral-8x7b.json").read_text(encoding="utf-8"))["config"]
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    upload.set_input_files(tmp_path / "config.json")
    expect(page.locator(".launch-read [role=status]")).to_contain_text("Read config.json.")
    expect(page.get_by_role("alert")).to_contain_text("must divide the model's 8 experts")
    scenario = Scenario.from_dict(load_scenario("six-cuts-pp-inside-dp").to_dict() | {"name": "my mesh"})
    (tmp_path / "mine.toml").write_text(scenario.to_toml(), encoding="utf-8")
    upload.set_input_files(tmp_path / "mine.toml")
    expect(page.locator(".mesh-verdict h2")).to_contain_text("order tp-cp-pp-dp")
    assert count(page, "node crossings") == "26"
    (tmp_path / "bad.toml").write_text("[mesh]\ntpp = 2\n", encoding="utf-8")
    upload.set_input_files(tmp_path / "bad.toml")
    expect(page.get_by_role("alert")).to_contain_text("mesh.tpp=2 is not a known key")
    (tmp_path / "big.json").write_text(" " * 300_000, encoding="utf-8")
    upload.set_input_files(tmp_path / "big.json")
    expect(page.get_by_role("alert")).to_contain_text("is over 262,144 bytes")


def test_a_launch_becomes_a_mesh_with_its_own_model(page: Page, explorer_url: str, tmp_path: Path) -> None:
    open_mesh(page, explorer_url)
    line, read = page.get_by_label("or what launches it"), page.get_by_label("What was read")
    line.fill("vllm serve deepseek-ai/DeepSeek-V3 -tp 8 -dp 8 --enable-expert-parallel")
    line.press("Enter")
    expect(read.get_by_role("status")).to_have_text("Read as vLLM, 64 GPUs, deepseek-v3 (command line).")
    expect(read).to_contain_text("read as deepseek-v3, which ships")
    expect(page.locator(".mesh-verdict h2")).to_contain_text("tp8 dp8 · ep64")
    assert query_of(page)["model.preset"] == ["deepseek-v3"]
    line.fill("nonsense -tp 2")
    page.get_by_role("button", name="Read", exact=True).click()
    expect(read.get_by_role("alert")).to_contain_text("does not say which framework it starts")
    expect(page.get_by_text("This mesh works")).to_have_count(0)
    script = "#!/bin/bash\nDP=4\nvllm serve me/mine -tp 2 -dp $DP --enable-expert-parallel\n"
    (tmp_path / "serve.sh").write_text(script, encoding="utf-8")
    page.locator("input[type=file]").set_input_files(tmp_path / "serve.sh")
    expect(read.get_by_role("alert")).to_contain_text("The model me/mine is not one that ships")
    expect(page.get_by_text("This mesh works")).to_have_count(0)
    page.get_by_label("Model of the launch").select_option("mixtral-8x7b")
    expect(page.locator(".mesh-verdict h2")).to_contain_text("tp2 dp4 · ep8")
    expect(read.get_by_role("status")).to_contain_text("Read as vLLM, 8 GPUs, mixtral-8x7b")


def test_two_scenarios_stand_side_by_side(page: Page, explorer_url: str) -> None:
    page.goto(explorer_url + "compare")
    expect(page.locator(".sides section")).to_have_count(2)
    row = page.locator("table").first.locator("tr", has_text="node crossings")
    expect(row.locator("td")).to_have_text(["15", "≠ 26"])
    page.get_by_label("only hops that differ").check()
    page.get_by_role("button", name="Swap sides").click()
    expect(row.locator("td")).to_have_text(["26", "≠ 15"])
    assert query_of(page)["a"] == ["scenario=six-cuts-pp-inside-dp"]


def test_every_chapter_is_predicted_and_then_shown(page: Page, explorer_url: str) -> None:
    page.goto(explorer_url + "learn")
    for number, chapter in enumerate(CHAPTERS, 1):
        lesson = chapter_payload(chapter.slug)
        expect(page.locator(".lesson h2")).to_be_visible()
        # The first is open already; choosing it would load it anew, under the answer.
        if number > 1:
            page.get_by_label("Chapter").select_option(chapter.slug)
        expect(page.locator(".lesson h2")).to_have_text(lesson["title"])
        expect(page.locator(".hop-panel")).to_be_hidden()
        answer = lesson["question"]["answer"]
        page.locator(".options").get_by_role("button", name=answer, exact=True).click()
        expect(page.locator(".verdict")).to_contain_text("Right.")
        shown = lesson["trip"]["hops"][lesson["reveal"]]["words"]["title"]
        expect(page.locator(".hop-panel h2")).to_have_text(shown)
        expect(page.locator(".toolbar .subtitle")).to_contain_text(f"{number} of {len(CHAPTERS)}")
    assert query_of(page)["chapter"] == [CHAPTERS[-1].slug]


def test_chapters_lead_on_and_progress_is_kept(page: Page, explorer_url: str) -> None:
    page.goto(explorer_url + "learn")
    page.locator(".options button").first.click()
    page.get_by_role("button", name=re.compile("^Next: ")).click()
    expect(page.locator(".lesson h2")).to_have_text(CHAPTERS[1].title)
    page.reload()
    expect(page.locator(".toolbar .subtitle")).to_contain_text("1 of")
    page.get_by_label("Chapter").select_option("quiz")
    expect(page.locator(".lesson h2")).to_have_text("What happens next?")
    page.locator(".options button").first.click()
    expect(page.locator(".verdict")).to_be_visible()
    page.get_by_role("button", name="Another question").click()
    expect(page.locator(".lesson .eyebrow")).to_have_text(re.compile("question 2", re.IGNORECASE))
    expect(page.locator(".toolbar .subtitle")).to_contain_text("of 1 right")


PAGES = [
    "mesh",
    "mesh?mesh.ep=3",
    "compare",
    "learn?chapter=relay",
    "learn?chapter=quiz&seed_of_quiz=5",
]


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious(page: Page, explorer_url: str, path: str) -> None:
    page.goto(explorer_url + path)
    expect(page.locator(".mesh-verdict h2, .sides h2, .lesson h2").first).to_be_visible()
    assert problems_in_both_schemes(page) == []


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("path", PAGES)
def test_nothing_sticks_out_of_the_page(
    page: Page, explorer_url: str, widths: tuple[int, int], path: str
) -> None:
    page.set_viewport_size({"width": widths[0], "height": 800})
    page.goto(explorer_url + path)
    expect(page.locator(".mesh-verdict h2, .sides h2, .lesson h2").first).to_be_visible()
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(200)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) == 0, width

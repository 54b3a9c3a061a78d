"""Run in Chromium: dropped dumps and the shipped recording, the player, filters, downloads, accessibility."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.downloads import saved_file
from tests.runs.made import DATA
from tracer.runs.report import examine_files


def open_run(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".report.ready")).to_be_visible(timeout=60_000)


def test_dumps_of_a_reader_are_examined_and_played(guarded: Page, explorer_url: str) -> None:
    """With the content security policy in force: files go to the explorer and nowhere else."""
    open_run(guarded, explorer_url + "run")
    expect(guarded.get_by_role("heading", name="Read what happened")).to_be_visible()
    dumps = sorted((DATA / "megatron-b").glob("_dump_*"))
    guarded.get_by_label("files", exact=True).set_input_files(dumps)
    expect(guarded.get_by_role("heading", name="Which ranks stopped first? 9, 14")).to_be_visible()
    expect(guarded.locator(".drop")).to_contain_text("16 files: in use")
    report = examine_files([DATA / "megatron-b"])
    rows = guarded.get_by_role("region", name="Evidence, rank by rank").locator("tbody tr")
    expect(rows).to_have_count(len(report.blame.suspects))
    expect(rows.first).to_contain_text(report.blame.suspects[0].why)
    guarded.get_by_role("combobox", name="Groups").select_option("tp")
    expect(guarded.locator(".run .picture").last.locator("svg")).to_be_visible()
    expect(guarded.get_by_role("heading", name="Which ranks stopped first? 9, 14")).to_be_visible()


def test_the_player_lights_the_group_of_the_newest_operation(page: Page, explorer_url: str) -> None:
    open_run(page, explorer_url + "run?recording=megatron-a&run_rank=12&run_group=tp")
    slider = page.get_by_label("Time of the run")
    slider.focus()
    slider.press("Home")
    slider.press("ArrowRight")
    said = page.locator(".run-said")
    expect(said).to_contain_text("rank 12 issues")
    lit = page.locator(".run-rank.lit")
    assert sorted(each.get_attribute("data-rank") or "" for each in lit.all()) == ["12", "13"]
    cursor = page.locator(".run-cursor")
    before = float(cursor.get_attribute("x1") or 0)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.wait_for_timeout(600)
    page.get_by_role("button", name="Pause").click()
    assert float(cursor.get_attribute("x1") or 0) > before


def test_the_differences_are_saved_as_markdown_and_json(page: Page, explorer_url: str) -> None:
    open_run(page, explorer_url + "run?recording=megatron-a")
    page.get_by_text("Export", exact=True).click()

    def saved(name: str) -> str:
        return saved_file(page, page.get_by_role("button", name=name, exact=True), name).read_text()

    text = examine_files([DATA / "megatron-a"]).to_markdown()
    assert saved("run-differences.md") == text.replace(f"{DATA / 'megatron-a'}/", "")
    assert '"suspects"' in saved("run-differences.json")
    assert "[mesh]" in saved("run-scenario.toml")


def test_what_is_no_recording_is_said_and_leaves_the_page_usable(
    page: Page, explorer_url: str, tmp_path: Path
) -> None:
    open_run(page, explorer_url + "run")
    wrong = tmp_path / "letter.txt"
    wrong.write_text("Dear reader,\n")
    page.get_by_label("files", exact=True).set_input_files([wrong])
    expect(page.get_by_role("alert")).to_contain_text("hold no recording")
    page.get_by_label("Or a recording that ships here").select_option("megatron-a")
    expect(page.get_by_role("heading", name="Which ranks stopped first? 12, 14")).to_be_visible()

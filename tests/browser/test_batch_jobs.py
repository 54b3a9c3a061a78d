"""A file of picks, and counts in the background of several workers, on the batch page in Chromium."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import psutil
import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_report_pages import cells, figure, open_page, table
from tracer import load_scenario
from tracer.batch.census.report import crossings_per_token
from tracer.batch.census.take import take_census
from tracer.batch.picks.draws import DrawnPicks, popularity_of
from tracer.batch.picks.source import ArrayPicks

ROOT = Path(__file__).parents[2]
PATIENCE_MS = 240_000


def test_a_file_of_picks_is_counted_and_bad_ones_are_refused(
    page: Page, explorer_url: str, tmp_path: Path
) -> None:
    picks = np.argsort(np.random.default_rng(5).random((8, 100, 32)), axis=2)[:, :, :2]
    np.save(tmp_path / "mine.npy", picks)
    np.save(tmp_path / "wrong.npy", picks + 16)
    (tmp_path / "notes.json").write_text('{"picks": [[1, 2], [3, 4]]}', encoding="utf-8")
    (tmp_path / "big.npy").write_bytes(bytes((1 << 24) + 1))
    open_page(page, explorer_url + "batch?tokens=64")
    upload, wrong = page.locator("[data-key=picks]"), page.locator(".control-wrong")
    upload.set_input_files(tmp_path / "mine.npy")
    expect(page.locator(".report .place")).to_contain_text("picks of mine.npy")
    census = take_census(load_scenario("six-cuts"), ArrayPicks(picks))
    assert [row[1] for row in cells(page, "Loads of experts")] == [f"{n:,}" for n in census.load_by_expert]
    page.get_by_label("Expert slots for EPLB").fill("64")
    page.get_by_label("Expert slots for EPLB").press("Enter")
    expect(table(page, "EPLB before and after").first).to_be_visible()
    expect(page.locator(".report .place")).to_contain_text("picks of mine.npy")
    for name, said in (
        ("wrong.npy", "must be an expert from 0 to 31"),
        ("notes.json", "must be integers with 3 axes; check the nesting of the lists"),
        ("big.npy", "is over 16,777,216 bytes; send fewer tokens"),
    ):
        upload.set_input_files(tmp_path / name)
        expect(wrong).to_contain_text(said)
        expect(upload).to_have_attribute("aria-invalid", "true")
        expect(table(page, "Loads of experts")).to_have_count(32)
    page.goto(explorer_url + "batch?tokens=100000")
    expect(page.locator(".report")).to_contain_text("This server names no folder for such jobs")


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, psutil.Process]]:
    """The explorer under gunicorn with two workers, which share a folder of jobs."""
    folder = tmp_path_factory.mktemp("workers")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "-w", "2", "-b", f"127.0.0.1:{port}"]
    environment = {**os.environ, "TOKENTRIP_JOBS": str(folder / "jobs")}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [*command, "tests.browser.impatient:create_server()"], cwd=ROOT, env=environment, stderr=log
        ) as server,
    ):
        url = f"http://127.0.0.1:{port}/"
        try:
            _wait_for(url + "healthz")
            yield url, psutil.Process(server.pid)
        finally:
            server.terminate()


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urlopen(address) as answer:
                assert answer.status == 200
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def jobs(server: psutil.Process) -> list[psutil.Process]:
    """Processes of the workers: the jobs."""
    return [job for worker in server.children() for job in worker.children() if job.status() != "zombie"]


def test_a_long_count_runs_in_the_background(guarded: Page, workers: tuple[str, psutil.Process]) -> None:
    page, (url, server) = guarded, workers
    page.goto(url + "batch?tokens=4194304")
    job, start = page.locator("#job"), page.get_by_role("button", name="Count 4,194,304 tokens")
    expect(job).to_be_hidden()
    start.click()
    expect(job).to_be_visible()
    expect(page.locator("#job-said")).to_contain_text("blocks counted", timeout=PATIENCE_MS)
    assert int(page.locator("#job-done").get_attribute("value") or 0) > 0
    job.get_by_role("button", name="Cancel").click()
    expect(job).to_be_hidden()
    expect(page.locator(".counter")).to_have_count(0)
    expect(start).to_be_enabled()
    page.get_by_label("Tokens, up to").fill("70000")
    page.get_by_label("Tokens, up to").press("Enter")
    page.get_by_role("button", name="Count 70,000 tokens").click()
    expect(figure(page, "node crossings a token")).to_be_visible(timeout=PATIENCE_MS)
    expect(job).to_be_hidden()
    scenario = load_scenario("six-cuts")
    weights = popularity_of("zipf", 32, skew=0.5)
    picks = DrawnPicks.of_model(scenario.model, 70_000, popularity=weights, seed=scenario.seed)
    crossings = f"{crossings_per_token(take_census(scenario, picks)):.3g}"
    expect(figure(page, "node crossings a token")).to_have_text(crossings)
    assert not jobs(server)


def test_a_full_queue_is_said_on_the_page(
    page: Page, workers: tuple[str, psutil.Process], console_errors: list[str]
) -> None:
    url, _ = workers
    said = "job has to wait: 2 run here, of 2 at a time and 2 for one reader; ask again in 20 s"
    page.route(
        "**/_dash-update-component*",
        lambda route: route.fulfill(status=503, json={"error": {"field": "job", "text": said}}),
    )
    page.goto(url + "batch?tokens=4194304")
    start = page.get_by_role("button", name="Count 4,194,304 tokens")
    start.click()
    expect(page.locator("main")).to_contain_text(said)
    expect(start).to_be_enabled()
    expect(page.locator("#job")).to_be_hidden()
    assert console_errors
    console_errors.clear()  # browsers and Dash report every 503


def test_a_count_ends_when_its_tab_is_closed(guarded: Page, workers: tuple[str, psutil.Process]) -> None:
    page, (url, server) = guarded, workers
    page.goto(url + "batch?tokens=4194304")
    page.get_by_role("button", name="Count 4,194,304 tokens").click()
    expect(page.locator("#job-said")).to_contain_text("blocks counted", timeout=PATIENCE_MS)
    assert jobs(server)
    page.close()
    limit = time.monotonic() + 30
    while jobs(server):
        assert time.monotonic() < limit, "the job goes on"
        time.sleep(0.2)

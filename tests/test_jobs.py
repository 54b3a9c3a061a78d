"""Background jobs without a browser: what they count, tell and refuse, and where they write."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import flask
import pytest

pytest.importorskip("dash")
pytest.importorskip("numba")

from werkzeug.exceptions import HTTPException

from app.query.address import scenario_of
from app.reports.batch.batch import batch_report
from app.reports.batch.picks import AskedPicks
from app.server import create_app
from app.web.jobs import SetProgress, count_batch, job_manager
from tracer import ConfigError


def asked(tell: SetProgress, query: dict[str, str], turn: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(count_batch(tell, json.dumps({"query": query, "turn": turn})))
    return found


def test_a_job_tells_its_progress_and_answers_as_the_page_does() -> None:
    told: list[tuple[str, str, str]] = []
    query = {"tokens": "4096", "slots": "64"}
    found = asked(told.append, query, turn=3)
    assert found == {"turn": 3, "report": json.loads(json.dumps(batch_report(query)))}
    # Eight layers of one block each, walked three times: as they lie, and before and after balancing.
    assert sorted(int(done) for done, _, _ in told) == list(range(1, 25))
    assert {blocks for _, blocks, _ in told} == {"24"}
    assert told[0][2].endswith("of 24 blocks counted")


def test_more_tokens_than_the_page_waits_for_are_only_offered() -> None:
    blocks = batch_report({"tokens": "65537"})["blocks"]
    assert [block["kind"] for block in blocks] == ["job"]
    assert blocks[0]["start"] == "Count 65,537 tokens"
    told: list[tuple[str, str, str]] = []
    found = asked(told.append, {"tokens": "65537"})["report"]
    assert found["blocks"][0]["kind"] == "counts"


DEEP = {
    "scenario": "", "mesh.dp": "64", "mesh.ep": "64", "model.layers": "4096", "model.hidden": "64",
    "model.heads": "8", "model.experts": "256", "model.top_k": "64", "model.expert_hidden": "64",
    "token.prompt": "4096",
}  # fmt: skip


def test_the_work_of_a_count_is_known_before_it_starts() -> None:
    """Few tokens of many layers and picks cost as much as many tokens: offered as a job, or refused."""
    assert batch_report({"scenario": "mixtral-8x7b-ep8", "tokens": "1024"})["blocks"][0]["kind"] == "counts"
    blocks = batch_report(DEEP)["blocks"]
    assert [block["kind"] for block in blocks] == ["job"]
    with pytest.raises(ConfigError, match=r"tokens=65536 of 4,096 layers cost as much as .* plain picks"):
        batch_report(DEEP | {"tokens": "65536"})
    balanced = AskedPicks.of(DEEP | {"slots": "256"}), AskedPicks.of(DEEP)
    scenario = scenario_of(DEEP)
    assert balanced[0].work(scenario) == 3 * balanced[1].work(scenario)


def test_what_is_wrong_is_an_answer() -> None:
    found = asked(lambda _: None, {"tokens": "4194305"})["report"]
    assert found["error"]["text"].startswith("tokens='4194305' must be a whole number from 1 to 4,194,304")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"TOKENTRIP_JOBS=.*cannot be used for jobs.*can be written"):
        job_manager(tmp_path / "file" / "jobs")


class HandMovedClock:
    """The time of day as a test sets it, in this process and in those that it forks."""

    def __init__(self) -> None:
        self.seconds = multiprocessing.Value("d", 1e9)
        self.sleep = time.sleep

    def time(self) -> float:
        """Seconds since 1970."""
        return float(self.seconds.value)


@pytest.mark.parametrize("times_asked", [0, 10])
def test_a_job_ends_when_nobody_asks_for_it(
    times_asked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked after every half of the time it waits, it goes on; then nobody asks, and it ends."""
    clock = HandMovedClock()
    monkeypatch.setattr("app.web.jobs.time", clock)
    monkeypatch.setattr("app.web.jobs.LONELY_S", 0.6)
    manager = job_manager(tmp_path)

    def endless(*_: object) -> None:
        while True:
            time.sleep(0.01)

    job = manager.call_job_fn("key", endless, {}, {})
    for _ in range(times_asked):
        clock.seconds.value += 0.3
        time.sleep(0.05)  # the watch looks every hundredth of a second; an idle one would only see less
        assert manager.job_running(job)
        manager.get_progress("key")
    clock.seconds.value += 0.7
    limit = time.monotonic() + 300
    while manager.job_running(job):
        assert time.monotonic() < limit, "the job goes on though nobody asks for it"
        time.sleep(0.05)


def test_nothing_runs_in_the_background_unless_a_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKENTRIP_JOBS", raising=False)
    app = create_app()
    assert app.server.config["TOKENTRIP_JOBS"] is None
    assert not [each for each in app._callback_list if "job" in each["output"]]


def _asleep(*_: object) -> None:
    time.sleep(60)


def test_a_full_house_says_so_and_when_to_ask_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.jobs.AT_ONCE", 3)
    manager = job_manager(tmp_path)
    server = flask.Flask(__name__)
    jobs: list[int] = []

    def start(client: str) -> None:
        with server.test_request_context(environ_base={"REMOTE_ADDR": client}):
            jobs.append(manager.call_job_fn(manager.build_cache_key(_asleep, [], [], []), _asleep, [], {}))

    def refused(client: str) -> flask.Response:
        with pytest.raises(HTTPException, match=r"Unknown Error") as caught:
            start(client)
        found = caught.value.get_response()
        assert isinstance(found, flask.Response)
        return found

    try:
        start("::1")
        start("::1")
        own = refused("::1")  # two of one reader
        assert (own.status_code, own.headers["Retry-After"]) == (503, "20")
        assert own.json is not None
        assert own.json["error"]["text"].startswith("job has to wait: 2 run here, of 3 at a time")
        start("10.0.0.1")
        assert refused("10.0.0.2").status_code == 503  # three in all
        manager.terminate_job(jobs[0])
        start("::1")
    finally:
        for job in jobs:
            manager.terminate_job(job)


def test_no_job_has_a_key_that_another_could_guess(tmp_path: Path) -> None:
    manager = job_manager(tmp_path)
    keys = {manager.build_cache_key(count_batch, ["same"], [], []) for _ in range(50)}
    assert len(keys) == 50
    assert min(map(len, keys)) >= 43
    assert tmp_path.stat().st_mode & 0o077 == 0


def test_what_jobs_leave_on_disk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.jobs.FOLDER_BYTES", 1 << 20)
    manager = job_manager(tmp_path / "jobs")
    for index in range(40):
        manager.handle.set(f"answer-{index}", "x" * 200_000)
    assert manager.handle.volume() < 3 << 20

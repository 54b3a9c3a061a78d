"""Background jobs without a browser: what they count, tell and refuse, and where they write."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("dash")
pytest.importorskip("numba")

from app.jobs import count_batch, job_manager
from app.reports.batch import batch_report
from app.server import create_app
from tracer import ConfigError


def test_a_job_tells_its_progress_and_answers_as_the_page_does() -> None:
    told: list[tuple[str, str, str]] = []
    query = {"tokens": "4096", "slots": "64"}
    found = count_batch(told.append, {"query": query, "turn": 3})
    assert found == {"turn": 3, "report": batch_report(query)}
    # Eight layers of one block each, walked three times: as they lie, and before and after balancing.
    assert sorted(int(done) for done, _, _ in told) == list(range(1, 25))
    assert {blocks for _, blocks, _ in told} == {"24"}
    assert told[0][2].endswith("of 24 blocks counted")


def test_more_tokens_than_the_page_waits_for_are_only_offered() -> None:
    blocks = batch_report({"tokens": "65537"})["blocks"]
    assert [block["kind"] for block in blocks] == ["job"]
    assert blocks[0]["start"] == "Count 65,537 tokens"
    told: list[tuple[str, str, str]] = []
    found = count_batch(told.append, {"query": {"tokens": "65537"}, "turn": 1})["report"]
    assert found["blocks"][0]["kind"] == "counts"


def test_what_is_wrong_is_an_answer() -> None:
    found = count_batch(lambda _: None, {"query": {"tokens": "4194305"}, "turn": 1})["report"]
    assert found["error"]["text"].startswith("tokens='4194305' must be a whole number from 1 to 4,194,304")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"TOKENTRIP_JOBS=.*cannot be used for jobs.*can be written"):
        job_manager(tmp_path / "file" / "jobs")


def test_nothing_runs_in_the_background_unless_a_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKENTRIP_JOBS", raising=False)
    app = create_app()
    assert app.server.config["TOKENTRIP_JOBS"] is None
    assert not [each for each in app._callback_list if "job" in each["output"]]

"""A question that takes too much processor time is stopped, and the next one is answered."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest

pytest.importorskip("dash")

from app.server import create_app
from app.web import flask_api
from app.web.answers import Answer
from app.web.budget import Budget
from tracer.errors import ConfigError


def spin(seconds: float) -> str:
    """Work in Python for so long, as a loop of the engine would, deaf to errors."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        with contextlib.suppress(Exception):
            sum(range(100))
    return "done"


def test_a_question_over_the_budget_is_stopped_and_said() -> None:
    budget = Budget(seconds=0.1)
    with pytest.raises(ConfigError, match=r"took more than the 0\.1 s of processor time"):
        budget.hold(lambda: spin(60))
    assert budget.hold(lambda: spin(0.02)) == "done"


def test_waiting_and_other_threads_cost_nothing() -> None:
    budget = Budget(seconds=0.1)
    found: list[str] = []
    others = [
        threading.Thread(target=lambda: found.append(budget.hold(lambda: spin(0.04)))) for _ in range(6)
    ]
    for other in others:
        other.start()
    budget.hold(lambda: time.sleep(0.3))
    for other in others:
        other.join()
    assert found == ["done"] * 6


def test_the_server_tells_a_page_that_its_question_was_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(path: str, query: str, body: bytes | None = None) -> Answer:
        spin(60 if "slow" in query else 0)
        return Answer(200, "text/plain", b"answered", "")

    monkeypatch.setattr(flask_api, "answer", slow)
    monkeypatch.setattr(flask_api, "BUDGET", Budget(seconds=0.1))
    client = create_app().server.test_client()
    said = client.get("/api/traffic?slow").json
    assert said is not None
    assert said["error"]["rule"].startswith("took more than the 0.1 s of processor time")
    assert client.get("/export/trip.svg?slow").status_code == 400
    assert client.get("/api/traffic").data == b"answered"

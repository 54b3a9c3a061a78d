"""A few users at once on two workers, one of which is killed: nobody is left without an answer."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("gunicorn")

from benchmarks.load import crowd, percentile, served


def leave_early(port: int) -> None:
    """Readers who close the page: before the request is whole, and before its answer comes."""
    for request in (b"GET /api/batch", b"GET /api/batch?tokens=2048 HTTP/1.1\r\nHost: x\r\n\r\n"):
        for _ in range(4):
            with socket.create_connection(("127.0.0.1", port)) as left:
                left.sendall(request)


def test_a_killed_worker_leaves_no_request_without_an_answer() -> None:
    with served(2) as workers:
        before = set(workers.pids())
        seen, memory = crowd(workers, users=6, seconds=4, kill=True, think=(0.02, 0.1))
        leave_early(workers.port)
        after = set(workers.pids())
        alone, _ = crowd(workers, users=1, seconds=1, think=(0.01, 0.02))
    assert alone.failed == []
    assert seen.failed == []
    assert sum(map(len, seen.seconds.values())) > 5
    assert len(before - after) == 1
    assert len(after) == 2
    assert all(0 < size < 1_000 for sizes in memory for size in sizes)


def test_percentiles() -> None:
    values = [float(value) for value in range(100)]
    assert [percentile(values, share) for share in (0.5, 0.95, 1.0)] == [50.0, 95.0, 99.0]
    assert percentile([], 0.5) == 0.0

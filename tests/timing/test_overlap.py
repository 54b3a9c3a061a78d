"""Two micro-batches on two streams: bounds that hold for any times, and the cases worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timing.drawing import few

from tracer.errors import ConfigError
from tracer.timing.schedules.overlap import MoeTimes, overlap_two
from tracer.timing.schedules.streams import Task, makespan, run_streams

TIME = st.floats(1e-6, 1.0)
TIMES = st.builds(MoeTimes, TIME, TIME, st.floats(0, 1.0), TIME, TIME)


@few
@given(TIMES, st.integers(1, 8))
def test_overlap_is_between_its_bound_and_no_overlap(times: MoeTimes, layers: int):
    found = overlap_two(times, layers=layers)
    fuller = max(found.compute_seconds, found.communication_seconds)
    assert fuller <= found.seconds * (1 + 1e-9)
    assert found.seconds <= found.halves_seconds * (1 + 1e-9)
    assert found.gain <= found.bound + 1e-9
    assert -1e-12 <= found.exposed_seconds <= found.communication_seconds * (1 + 1e-9)


def test_equal_streams_come_near_twice_the_throughput():
    found = overlap_two(MoeTimes(4, 4, 0, 4, 4), layers=60)
    assert found.bound == 1.0
    assert found.gain > 0.98


def test_small_batches_lose_by_splitting():
    """Reading the same weights twice costs more than hiding gains: SGLang saw -27 % at 32 requests."""
    whole = MoeTimes(1, 0.1, 0.1, 1, 0.1)
    half = MoeTimes(0.95, 0.06, 0.1, 0.95, 0.06)
    assert overlap_two(whole, half, layers=10).gain < -0.2


def test_batch_b_computes_while_a_dispatches():
    placed = {each.task.name: each for each in overlap_two(MoeTimes(4, 2, 0, 4, 2)).placed}
    assert placed["A 1 dispatch"].start == placed["B 1 attention"].start == 2
    assert placed["A 1 experts"].start == 4


def test_streams_wait_for_events():
    placed = run_streams([Task("a", "s", 2), Task("b", "t", 1, ("a",)), Task("c", "s", 1)])
    assert [each.start for each in placed] == [0, 2, 2]
    assert makespan(placed) == 3
    assert makespan([]) == 0


def test_bad_tasks_are_refused():
    with pytest.raises(
        ConfigError, match=r"task\.a\.seconds=-1 must be a finite number of seconds of 0 or more"
    ):
        Task("a", "s", -1)
    with pytest.raises(ConfigError, match=r"task\.name='a' stands twice"):
        run_streams([Task("a", "s", 1), Task("a", "s", 1)])
    with pytest.raises(ConfigError, match=r"task\.a='b' waits for 'b', which is not recorded before it"):
        run_streams([Task("a", "s", 1, ("b",)), Task("b", "s", 1)])


@pytest.mark.parametrize("name", ["attention", "dispatch", "experts", "combine"])
@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "1", True])
def test_bad_times_are_refused(name: str, seconds: object):
    times: dict[str, object] = dict.fromkeys(("attention", "dispatch", "shared", "experts", "combine"), 1.0)
    with pytest.raises(ConfigError, match=rf"overlap\.{name}=.* seconds above 0"):
        MoeTimes(**times | {name: seconds})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"overlap\.layers=0"):
        overlap_two(MoeTimes(1, 1, 1, 1, 1), layers=0)

"""Pipelines, decode and DualPipe: schedules against their closed forms, exactly."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timing.drawing import few

from tracer import load_scenario
from tracer.errors import ConfigError
from tracer.timing.report import time_report
from tracer.timing.schedules.decode_pipeline import decode_bubble, run_decode
from tracer.timing.schedules.dualpipe import dualpipe, dualpipe_bubble
from tracer.timing.schedules.dualpipe_clock import ChunkTimes, ChunkWork
from tracer.timing.schedules.pipeline import check_stages, run_pipeline
from tracer.timing.schedules.pipeline import pipeline_bubble as forward_bubble
from tracer.timing.schedules.training import train

COUNTS = st.integers(1, 12)
WHOLE = st.integers(1, 50)


@few
@given(COUNTS, COUNTS, WHOLE)
def test_a_forward_pipeline_takes_its_closed_form(stages: int, batches: int, seconds: int):
    run = run_pipeline([[seconds] * batches] * stages)
    assert run.makespan == (batches + stages - 1) * seconds
    idle = stages * run.makespan - stages * batches * seconds
    assert idle * (batches + stages - 1) == (stages - 1) * stages * run.makespan
    assert run.bubble == pytest.approx(forward_bubble(stages, batches), abs=1e-15)


def by_hand(table: list[list[int]], send: int) -> list[list[int]]:
    start = [[0] * len(row) for row in table]
    for s, row in enumerate(table):
        for m in range(len(row)):
            arrived = start[s - 1][m] + table[s - 1][m] + send if s else 0
            free = start[s][m - 1] + row[m - 1] if m else 0
            start[s][m] = max(arrived, free)
    return start


@few
@given(st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(WHOLE, min_size=width, max_size=width), min_size=1, max_size=5)
), st.integers(0, 9))  # fmt: skip
def test_uneven_pipelines_agree_with_a_plain_loop(table: list[list[int]], send: int):
    assert [list(row) for row in run_pipeline(table, send).start] == by_hand(table, send)


@few
@given(COUNTS, COUNTS, st.integers(1, 6), WHOLE)
def test_decode_takes_its_closed_form(stages: int, groups: int, steps: int, seconds: int):
    run = run_decode(stages, groups, steps, seconds)
    # With fewer groups than stages a group waits for its own token to come round; with more, for its turn.
    assert run.makespan == (max(stages, groups) * steps + min(stages, groups) - 1) * seconds
    if steps > 1:
        assert run.seconds_per_token == max(stages, groups) * seconds


@pytest.mark.parametrize(("stages", "groups"), [(4, 1), (4, 3), (4, 4), (4, 9), (1, 1)])
def test_a_long_decode_comes_to_its_steady_bubble(stages: int, groups: int):
    assert run_decode(stages, groups, 400, 1.0).bubble == pytest.approx(
        decode_bubble(stages, groups), abs=0.01
    )


@st.composite
def chunks(draw: st.DrawFn) -> ChunkTimes:
    """Chunks whose backward for inputs takes as long as a forward, as the closed form supposes."""
    forward, weights = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    weights = min(weights, forward)
    backward = forward + weights
    overlapped = draw(st.integers(max(forward, backward), forward + backward))
    return ChunkTimes(forward, backward, weights, overlapped)


@few
@given(st.integers(1, 6), st.integers(0, 6), chunks())
def test_the_longest_bubble_of_training_is_its_closed_form(half: int, more: int, times: ChunkTimes):
    stages = 2 * half
    found = dualpipe(stages, 2 * stages + 2 * more, times)
    assert max(found.bubble_seconds) == dualpipe_bubble(stages, times)


@few
@given(st.integers(1, 6), st.integers(0, 6), st.integers(1, 20))
def test_without_gain_from_overlap_every_stage_has_that_bubble(half: int, more: int, forward: int):
    stages, times = 2 * half, ChunkTimes(forward, 2 * forward, forward, 3 * forward)
    found = dualpipe(stages, 2 * stages + 2 * more, times)
    assert set(found.bubble_seconds) == {dualpipe_bubble(stages, times)}


@pytest.mark.parametrize(("stages", "batches"), [(2, 4), (8, 20), (16, 40)])
def test_dualpipe_does_all_work_once_and_one_thing_at_a_time(stages: int, batches: int):
    found = dualpipe(stages, batches, ChunkTimes(1, 2, 1, 2.5))
    for stage in range(stages):
        mine = [number for number, at in enumerate(found.stage) if at == stage]
        for column in (found.forward_batch, found.backward_batch):
            assert sorted(column[i] for i in mine if column[i] >= 0) == list(range(batches))
        assert all(found.start[a] + found.seconds[a] <= found.start[b] for a, b in pairwise(mine))
        kinds = Counter(found.kind[i] for i in mine)
        assert kinds[ChunkWork.BACKWARD_INPUT] == kinds[ChunkWork.WEIGHTS]


def test_dualpipe_sends_forward_before_it_is_received():
    found = dualpipe(4, 8, ChunkTimes(1, 2, 1, 2.5))
    ends = {
        (int(s), int(b)): start + length
        for s, b, start, length in zip(
            found.stage, found.forward_batch, found.start, found.seconds, strict=True
        )
        if b >= 0
    }
    starts = {
        (int(s), int(b)): start
        for s, b, start in zip(found.stage, found.forward_batch, found.start, strict=True)
        if b >= 0
    }
    for batch in range(8):
        way = range(4) if batch < 4 else range(3, -1, -1)
        stages = list(way)
        assert all(starts[b, batch] >= ends[a, batch] for a, b in pairwise(stages))


def test_the_published_example_of_8_stages_and_20_batches():
    times = ChunkTimes(1, 2, 1, 3)
    assert max(dualpipe(8, 20, times).bubble_seconds) == 3 * (3 + 2 - 3)
    assert dualpipe_bubble(8, times, "1f1b") == 21
    assert dualpipe_bubble(8, times, "zb1p") == 7


BAD_SECONDS = st.sampled_from([0, -1.0, float("nan"), float("inf"), "1", None, True])


@few
@given(BAD_SECONDS)
def test_bad_times_are_refused(seconds: object):
    with pytest.raises(ConfigError, match=r"pipeline\.cell_seconds.* above 0"):
        run_decode(2, 2, 2, seconds)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"chunk\.overlapped.* above 0"):
        ChunkTimes(1, 2, 1, seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [[], [[]], [[1, 2], [1]], [["a"]], 3.0, [[1, 0]], [[1, -2]]])
def test_bad_tables_are_refused(table: object):
    with pytest.raises(ConfigError, match=r"pipeline\.seconds=.* must be"):
        run_pipeline(table)  # type: ignore[arg-type]


def test_bad_counts_are_refused():
    with pytest.raises(ConfigError, match=r"pipeline\.stages=62 is more stages than the model's 61 layers"):
        check_stages(62, 61)
    with pytest.raises(ConfigError, match=r"pipeline\.stages=0 must be a whole number"):
        forward_bubble(0, 1)
    with pytest.raises(ConfigError, match=r"pipeline\.stages=3 must be even for DualPipe; try 4"):
        dualpipe(3, 8, ChunkTimes(1, 2, 1, 3))
    with pytest.raises(ConfigError, match=r"micro_batches=6 must be even and at least 2 x 4 stages.*try 8"):
        dualpipe(4, 6, ChunkTimes(1, 2, 1, 3))
    with pytest.raises(ConfigError, match=r"chunk\.weights=2 must be less than chunk\.backward = 2"):
        ChunkTimes(1, 2, 2, 3)
    with pytest.raises(ConfigError, match="schedule='gpipe' must be one of dualpipe"):
        dualpipe_bubble(4, ChunkTimes(1, 2, 1, 3), "gpipe")


def test_chunks_of_training_come_from_the_forward_pass():
    report = time_report(load_scenario("six-cuts"), tokens=4096)
    assert report.whole is not None
    found = train(report.whole, 7)
    compute, forward = found.times.weights, found.times.forward
    exchange = 4 * sum(each.seconds for each in report.whole.exchange.values())
    assert forward == max(report.whole.stage_seconds)
    assert forward == pytest.approx(compute + exchange)
    assert found.times.backward == pytest.approx(forward + compute)
    assert found.times.overlapped == pytest.approx(max(3 * compute, 2 * exchange))
    assert (found.schedule.stages, found.schedule.micro_batches) == (2, 8)
    assert [name for name, _ in found.idle_seconds] == ["dualpipe", "zb1p", "1f1b"]
    assert dict(found.idle_seconds)["1f1b"] == pytest.approx(forward + found.times.backward)


def test_one_stage_trains_without_a_pipeline():
    report = time_report(load_scenario("mixtral-8x7b-ep8"), hardware="h100")
    assert report.whole is not None
    with pytest.raises(ConfigError, match=r"mesh\.pp=1 is one stage"):
        train(report.whole, 8)

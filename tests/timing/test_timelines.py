"""Timelines, the trace they become, and the charts."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timing.drawing import few

import tracer
from layouts.charts.gantt import gantt_figure
from layouts.charts.roofline import roofline_figure
from tracer.errors import ConfigError
from tracer.mesh.hardware import hardware_preset
from tracer.model.configs.presets import model_preset
from tracer.timing import timeline
from tracer.timing.roofline import expert_points
from tracer.timing.schedules.decode_pipeline import run_decode
from tracer.timing.schedules.dualpipe import dualpipe
from tracer.timing.schedules.dualpipe_clock import ChunkTimes
from tracer.timing.schedules.overlap import MoeTimes, overlap_two
from tracer.timing.schedules.pipeline import run_pipeline
from tracer.timing.trace import to_perfetto, trace_events
from tracer.trip.clock import trip_time

SLICES = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 20), st.integers(0, 9), st.just("l")
    ),
    max_size=30,
)  # fmt: skip


def events_of(text: str, phase: str) -> list[dict[str, object]]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == phase]


@few
@given(SLICES)
def test_slices_of_one_thread_never_overlap(slices: list[tuple[str, str, float, float, str]]):
    events = [e for e in trace_events(timeline.from_slices("t", slices), 1) if e["ph"] == "X"]
    assert len(events) == len(slices)
    for _, own in groupby(
        sorted(events, key=lambda e: (e["tid"], e["ts"], e["dur"])), key=lambda e: e["tid"]
    ):
        rows = list(own)
        assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in pairwise(rows))


def test_the_trace_is_in_microseconds_and_names_its_threads():
    placed = overlap_two(MoeTimes(4e-3, 2e-3, 1e-3, 3e-3, 2e-3)).placed
    text = to_perfetto(timeline.of_streams(placed, "overlap"), timeline.of_streams(placed, "again"))
    data = json.loads(text)
    assert set(data) == {"traceEvents", "displayTimeUnit"}
    assert data["displayTimeUnit"] == "ms"
    slices = events_of(text, "X")
    assert {event["pid"] for event in slices} == {1, 2}
    first = next(event for event in slices if event["name"] == "A 1 dispatch")
    assert (first["ts"], first["dur"]) == (pytest.approx(2000), pytest.approx(1000))
    named = {(e["pid"], e["tid"]): e["args"] for e in events_of(text, "M") if e["name"] == "thread_name"}
    assert all((event["pid"], event["tid"]) in named for event in slices)
    compute = {event["tid"] for event in slices if "attention" in str(event["name"])}
    assert not compute & {event["tid"] for event in slices if "dispatch" in str(event["name"])}


def every_timeline() -> list[timeline.Timeline]:
    trip = tracer.take_trip(tracer.load_scenario("six-cuts"))
    return [
        timeline.of_pipeline(run_pipeline([[2.0] * 4] * 3)),
        timeline.of_decode(run_decode(3, 2, 2, 1.0)),
        timeline.of_training(dualpipe(4, 8, ChunkTimes(1, 2, 1, 2.5))),
        timeline.of_streams(overlap_two(MoeTimes(4, 2, 1, 3, 2)).placed),
        timeline.of_trip(trip, trip_time(trip)),
    ]


def numbers(typed: dict[str, str]) -> list[float]:
    """What a typed array of a figure holds, read by numpy as plotly.js reads it."""
    found: list[float] = np.frombuffer(base64.b64decode(typed["bdata"]), typed["dtype"]).tolist()
    return found


@pytest.mark.parametrize("line", every_timeline(), ids=lambda line: line.title[:20])
def test_every_timeline_becomes_a_trace_and_a_chart(line: timeline.Timeline):
    slices = events_of(to_perfetto(line), "X")
    assert len(slices) == len(line) > 0
    ends = max(float(e["ts"]) + float(e["dur"]) for e in slices)  # type: ignore[arg-type]
    assert ends == pytest.approx(line.makespan * 1e6)
    figure = json.loads(json.dumps(gantt_figure(line)))
    assert sum(len(numbers(trace["x"])) for trace in figure["data"]) == len(line)


def test_the_chart_holds_starts_and_lengths_as_typed_arrays():
    schedule = dualpipe(4, 8, ChunkTimes(1, 2, 1, 2.5))
    figure = gantt_figure(timeline.of_training(schedule))
    found = [number for trace in figure["data"] for number in numbers(trace["base"])]
    assert sorted(found) == sorted(schedule.start)
    # A kind that only some rows have is as tall as any other.
    assert {trace["width"] for trace in figure["data"]} == {1 - figure["layout"]["bargap"]}


def test_the_roofline_chart_shows_roof_and_points():
    h100 = hardware_preset("h100")
    points = expert_points(model_preset("deepseek-v3"), h100, [1, 128, 16_384])
    figure = roofline_figure(h100, {"decode": points[:2], "prefill": points[2:]}, "fp8_flops")
    assert [trace["name"] for trace in figure["data"]] == [
        "H100 SXM, FP8",
        "decode",
        "prefill",
        "ridge, 590 FLOP/B",
    ]
    assert max(figure["data"][0]["y"]) == 1978


def test_charts_are_plain_data_and_need_neither_plotly_nor_numpy():
    code = (
        "import sys; sys.modules.update({'plotly': None, 'numpy': None}); "
        "from layouts.charts import bars, gantt, lines, matrix, roofline; "
        "print(bars.columns_figure([bars.Series('a', [1, 2], 'red')], 'x', 'y')['data'][0]['type'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout.strip() == "bar"


def test_columns_of_two_lengths_are_refused():
    two, one = (0.0, 0.0), (0.0,)
    with pytest.raises(ConfigError, match=r"timeline='lengths \[1, 2\]' must have columns of one length"):
        timeline.Timeline("t", ("r",), ("k",), two, one, (0, 0), (0, 0))

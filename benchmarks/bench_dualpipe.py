"""DualPipe of 64 stages and 256 micro-batches: schedule and figure JSON against one shape a task.

Both sides start from the stages and end with the figure as JSON text. The other side gives all shapes to
plotly at once: adding them one by one (``figure.add_shape``) takes far longer still.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import plotly.graph_objects as go

from benchmarks.ratios import Ratio, interleave
from layouts.charts.gantt import KIND_COLOURS, gantt_figure
from tracer.timing.schedules.dualpipe import dualpipe
from tracer.timing.schedules.dualpipe_clock import ChunkTimes, Schedule
from tracer.timing.timeline import of_training

STAGES, MICRO_BATCHES, RUNS = 64, 256, 3
TIMES = ChunkTimes(forward=1.0, backward=2.0, weights=1.0, overlapped=2.6)
FASTER, SMALLER = 20.0, 6.0


def ours() -> str:
    return json.dumps(gantt_figure(of_training(dualpipe(STAGES, MICRO_BATCHES, TIMES))))


def one_shape_a_task() -> str:
    figure = go.Figure(layout={"shapes": shapes(dualpipe(STAGES, MICRO_BATCHES, TIMES))})
    text: str = figure.to_json()
    return text


def shapes(schedule: Schedule) -> list[dict[str, object]]:
    """A rectangle a cell, with its micro-batch as label."""
    columns = (schedule.start, schedule.seconds, schedule.stage, schedule.kind, schedule.forward_batch)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        {
            "type": "rect",
            "x0": start,
            "x1": start + seconds,
            "y0": stage - 0.45,
            "y1": stage + 0.45,
            "fillcolor": KIND_COLOURS[kind],
            "line": {"width": 0},
            "label": {"text": str(batch)},
        }
        for start, seconds, stage, kind, batch in rows
    ]


def run() -> Iterator[Ratio]:
    """Time, and size of the JSON text."""
    yield interleave(
        f"DualPipe {STAGES} x {MICRO_BATCHES} as JSON, against one shape a task",
        ours,
        one_shape_a_task,
        rounds=RUNS,
        at_least=FASTER,
    )
    sizes = [len(side().encode()) / 1e6 for side in (ours, one_shape_a_task)]
    yield Ratio("its size, against one shape a task", *sizes, SMALLER, False, "MB", 1.0)

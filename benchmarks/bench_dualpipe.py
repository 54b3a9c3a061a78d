"""DualPipe of 64 stages and 256 micro-batches: schedule and figure JSON against one shape a task.

Both sides start from the stages and end with the figure as JSON text. They run in turn, in one process,
and the best of the runs counts. The other side gives all shapes to plotly at once: adding them one by
one (``figure.add_shape``) takes far longer still, and is timed on a part only.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import plotly.graph_objects as go

from layouts.charts.gantt import KIND_COLOURS, gantt_figure
from tracer.timing.dualpipe import ChunkTimes, Schedule, dualpipe
from tracer.timing.timeline import of_dualpipe

STAGES, MICRO_BATCHES, RUNS = 64, 256, 3
TIMES = ChunkTimes(forward=1.0, backward=2.0, weights=1.0, overlapped=2.6)
ADDED_SHAPES = 50


def ours() -> str:
    text: str = gantt_figure(of_dualpipe(dualpipe(STAGES, MICRO_BATCHES, TIMES))).to_json()
    return text


def one_shape_a_task() -> str:
    figure = go.Figure(layout={"shapes": shapes(dualpipe(STAGES, MICRO_BATCHES, TIMES))})
    text: str = figure.to_json()
    return text


def shapes(schedule: Schedule, count: int | None = None) -> list[dict[str, object]]:
    """A rectangle a cell, with its micro-batch as label."""
    columns = (schedule.start, schedule.seconds, schedule.stage, schedule.kind, schedule.forward_batch)
    rows = zip(*(column.tolist()[:count] for column in columns), strict=True)
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


def timed(run: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def add_some() -> None:
    figure = go.Figure()
    for shape in shapes(dualpipe(STAGES, MICRO_BATCHES, TIMES), ADDED_SHAPES):
        figure.add_shape(**shape)


def main() -> None:
    sides = {"ours": ours, "one shape a task": one_shape_a_task}
    best: dict[str, float] = {}
    sizes: dict[str, int] = {}
    for _ in range(RUNS):
        for name, side in sides.items():
            seconds, text = timed(side)
            best[name] = min(seconds, best.get(name, seconds))
            sizes[name] = len(str(text).encode())
    for name in sides:
        print(f"{name:18}{best[name]:8.3f} s {sizes[name] / 1e6:8.3f} MB")
    slow, fast = best["one shape a task"], best["ours"]
    print(f"{slow / fast:.0f} times faster, {sizes['one shape a task'] / sizes['ours']:.0f} times smaller")
    print(f"add_shape, {ADDED_SHAPES} of the tasks: {timed(add_some)[0]:.2f} s")


if __name__ == "__main__":
    main()

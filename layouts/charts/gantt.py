"""A timeline as a Gantt chart: one bar trace per kind, however many slices.

A figure with one shape a slice takes a dictionary and a validation for each; here a slice is one number
in three typed arrays, which plotly writes as base64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layouts.charts.figure import Figure, Trace, figure_of, typed

if TYPE_CHECKING:
    from tracer.timing.timeline import Timeline

KIND_COLOURS = (
    "#3b6fd4", "#d98a1f", "#e6b86a", "#7d8597", "#2a9d74", "#b04fb3", "#cf4310", "#5d6378",
)  # fmt: skip
MAX_LABELS = 2_000
GAP = 0.08
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def gantt_figure(timeline: Timeline, *, colours: tuple[str, ...] = KIND_COLOURS) -> Figure:
    """Rows from top to bottom, time to the right in the unit that fits; the legend switches kinds off.

    Labels show on hover up to ``MAX_LABELS`` slices; above that, kind, start and length do.
    """
    scale, unit = _unit(timeline.makespan)
    labelled = timeline.labels is not None and len(timeline) <= MAX_LABELS
    slices: list[list[int]] = [[] for _ in timeline.kinds]
    for number, code in enumerate(timeline.kind):
        slices[code].append(number)
    traces = [
        {**_bars(timeline, chosen, scale, unit, labelled), "name": kind, **_colour(colours, code)}
        for code, (kind, chosen) in enumerate(zip(timeline.kinds, slices, strict=True))
        if chosen
    ]
    return figure_of(traces, _layout(timeline, unit))


def _colour(colours: tuple[str, ...], code: int) -> Trace:
    return {"marker": {"line": {"width": 0}, "color": colours[code % len(colours)]}}


def _bars(timeline: Timeline, chosen: list[int], scale: float, unit: str, labelled: bool) -> Trace:
    """One trace: bars from ``base``, as long as ``x``."""
    name = "%{hovertext}" if labelled else "%{fullData.name}"
    return {
        "type": "bar",
        "orientation": "h",
        "base": _small([timeline.start[i] / scale for i in chosen]),
        "x": _small([timeline.seconds[i] / scale for i in chosen]),
        "y": typed("b" if len(timeline.rows) <= 128 else "i", (timeline.row[i] for i in chosen)),
        # Left alone, plotly makes the bars of a kind as wide as its rows are apart.
        "width": 1 - GAP,
        "hovertext": [timeline.label(i) for i in chosen] if labelled else None,
        "hovertemplate": f"{name}<br>from %{{base:.4g}} {unit}, %{{x:.4g}} {unit}<extra></extra>",
    }


def _small(values: list[float]) -> dict[str, str]:
    """Whole numbers that fit as int16, else float32: a pixel needs no more."""
    if all(value.is_integer() and abs(value) < 2**15 for value in values):
        return typed("h", (int(value) for value in values))
    return typed("f", values)


def _layout(timeline: Timeline, unit: str) -> dict[str, Any]:
    rows = len(timeline.rows)
    shown = range(0, rows, max(1, rows // 32))
    return {
        "title": {"text": timeline.title},
        "barmode": "overlay",
        "bargap": GAP,
        "xaxis": {"title": {"text": f"time ({unit})"}},
        "yaxis": {
            "autorange": "reversed",
            "tickvals": list(shown),
            "ticktext": [timeline.rows[row] for row in shown],
        },
        "legend": {"orientation": "h"},
    }


def _unit(makespan: float) -> tuple[float, str]:
    """(seconds of one unit, its name) for an axis of this length."""
    return next((scale for scale in _SCALES if makespan >= scale[0]), _SCALES[-1])

"""A timeline as a Gantt chart: one bar trace per kind, however many slices.

A figure with one shape a slice takes a dictionary and a validation for each; here a slice is one number
in three typed arrays, which plotly writes as base64.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from plotly.graph_objects import Figure

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
    import plotly.graph_objects as go

    scale, unit = _unit(timeline.makespan)
    labelled = timeline.labels is not None and len(timeline) <= MAX_LABELS
    figure = go.Figure()
    for code, kind in enumerate(timeline.kinds):
        chosen = np.flatnonzero(timeline.kind == code)
        if len(chosen):
            figure.add_trace(_bars(go, timeline, chosen, scale, unit, labelled).update(
                name=kind, marker_color=colours[code % len(colours)]
            ))  # fmt: skip
    figure.update_layout(**_layout(timeline, unit))
    return figure


def _bars(
    go: Any, timeline: Timeline, chosen: NDArray[np.int64], scale: float, unit: str, labelled: bool
) -> Any:
    """One trace: bars from ``base``, as long as ``x``."""
    text = [timeline.label(i) for i in chosen.tolist()] if labelled else None
    name = "%{hovertext}" if labelled else "%{fullData.name}"
    return go.Bar(
        orientation="h",
        base=_spec(_small(timeline.start[chosen] / scale)),
        x=_small(timeline.seconds[chosen] / scale),
        y=timeline.row[chosen].astype(np.int8 if len(timeline.rows) <= 128 else np.int32),
        # Left alone, plotly makes the bars of a kind as wide as its rows are apart.
        width=1 - GAP,
        hovertext=text,
        hovertemplate=f"{name}<br>from %{{base:.4g}} {unit}, %{{x:.4g}} {unit}<extra></extra>",
        marker_line_width=0,
    )


def _small(values: NDArray[np.float64]) -> NDArray[Any]:
    """Whole numbers that fit as int16, else float32: a pixel needs no more."""
    whole = np.rint(values)
    if len(values) and np.array_equal(whole, values) and abs(values).max() < 2**15:
        return whole.astype(np.int16)
    return values.astype(np.float32)


def _spec(values: NDArray[Any]) -> dict[str, str]:
    """A typed array as plotly.js reads it; plotly.py would write ``base`` as a list."""
    return {
        "dtype": f"{values.dtype.kind}{values.dtype.itemsize}",
        "bdata": b64encode(values.tobytes()).decode(),
    }


def _layout(timeline: Timeline, unit: str) -> dict[str, Any]:
    rows = len(timeline.rows)
    shown = range(0, rows, max(1, rows // 32))
    return {
        "title_text": timeline.title,
        "barmode": "overlay",
        "bargap": GAP,
        "xaxis_title_text": f"time ({unit})",
        "yaxis": {
            "autorange": "reversed",
            "tickvals": list(shown),
            "ticktext": [timeline.rows[row] for row in shown],
        },
        "legend_orientation": "h",
    }


def _unit(makespan: float) -> tuple[float, str]:
    """(seconds of one unit, its name) for an axis of this length."""
    return next((scale for scale in _SCALES if makespan >= scale[0]), _SCALES[-1])

"""Lines over one quantity, or marks on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layouts.charts.figure import Figure, figure_of


@dataclass(frozen=True, slots=True)
class Curve:
    """One line; a colour may be a variable of the page's style sheet.

    ``dash`` is a plotly dash, so that colour does not tell alone; ``marks`` draws points, larger.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dash: str = "solid"
    marks: bool = False


def lines_figure(
    lines: Sequence[Curve], x_title: str, y_title: str, *, logarithmic: bool = False, share: bool = False
) -> Figure:
    """Lines with their units in the titles; ``share`` writes the vertical axis in percent."""
    traces = [
        {
            "type": "scatter",
            "x": list(line.x),
            "y": list(line.y),
            "name": line.name,
            "mode": "markers" if line.marks else "lines",
            "line": {"color": line.colour, "dash": line.dash, "width": 2},
            "marker": {"color": line.colour, "size": 11},
        }
        for line in lines
    ]
    axis: dict[str, Any] = {"type": "log", "dtick": 1, "exponentformat": "SI"} if logarithmic else {}
    layout = {
        "xaxis": {"title": {"text": x_title}, **axis},
        "yaxis": {"title": {"text": y_title}, **axis, **({"tickformat": ".0%"} if share else {})},
        "legend": {"orientation": "h"},
    }
    return figure_of(traces, layout)

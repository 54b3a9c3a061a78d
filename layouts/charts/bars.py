"""Bars: stacked rows with one name each, and columns that are numbered from 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layouts.charts.figure import Figure, figure_of


@dataclass(frozen=True, slots=True)
class Series:
    """Values in the order of the rows; a colour may be a variable of the page's style sheet.

    ``pattern`` is a plotly fill pattern, so that colour does not tell alone.
    """

    name: str
    values: Sequence[float]
    colour: str
    pattern: str = ""


def bars_figure(names: Sequence[str], series: Sequence[Series], title: str) -> Figure:
    """Rows from top to bottom, the first series next to the axis; ``title`` says the unit."""
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": each.name,
            "x": list(each.values),
            "y": list(range(len(names))),
            "marker": {"color": each.colour, "pattern": {"shape": each.pattern, "solidity": 0.5}},
            "customdata": list(names),
            "hovertemplate": "%{customdata}<br>%{x:,.4s} " + each.name + "<extra></extra>",
        }
        for each in series
    ]
    shown = list(range(0, len(names), max(1, len(names) // 32)))
    layout = {
        "barmode": "stack",
        "bargap": 0.25,
        "xaxis": {"title": {"text": title}, "exponentformat": "SI"},
        "yaxis": {"autorange": "reversed", "tickvals": shown, "ticktext": [names[i] for i in shown]},
        "legend": {"orientation": "h", "traceorder": "normal"},
    }
    return figure_of(bars, layout)


def columns_figure(series: Sequence[Series], x_title: str, y_title: str) -> Figure:
    """Upright bars side by side, one per number and series: loads of experts, or of GPUs."""
    bars = [
        {
            "type": "bar",
            "name": each.name,
            "x": list(range(len(each.values))),
            "y": list(each.values),
            "marker": {"color": each.colour, "pattern": {"shape": each.pattern, "solidity": 0.5}},
            "hovertemplate": f"{x_title} %{{x}}: %{{y:,}} ({each.name})<extra></extra>",
        }
        for each in series
    ]
    layout = {
        "barmode": "group",
        "bargap": 0.15,
        "xaxis": {"title": {"text": x_title}},
        "yaxis": {"title": {"text": y_title}, "exponentformat": "SI"},
        "legend": {"orientation": "h"},
    }
    return figure_of(bars, layout)

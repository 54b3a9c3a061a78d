"""Upright bars side by side, numbered from 0: loads of experts, or of GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layouts.charts.bars import Series

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def columns_figure(series: Sequence[Series], x_title: str, y_title: str) -> Figure:
    """One bar a number and series."""
    import plotly.graph_objects as go

    bars = [
        go.Bar(
            name=each.name,
            x=list(range(len(each.values))),
            y=list(each.values),
            marker={"color": each.colour, "pattern": {"shape": each.pattern, "solidity": 0.5}},
            hovertemplate=f"{x_title} %{{x}}: %{{y:,}} ({each.name})<extra></extra>",
        )
        for each in series
    ]
    figure = go.Figure(bars)
    figure.update_layout(
        barmode="group",
        bargap=0.15,
        xaxis={"title": {"text": x_title}},
        yaxis={"title": {"text": y_title}, "exponentformat": "SI"},
        legend_orientation="h",
    )
    return figure

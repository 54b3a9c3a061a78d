"""Rows that each rank receives, exchange by exchange: a layer x rank matrix of shares of the mean."""

from __future__ import annotations

from collections.abc import Sequence

from layouts.charts.figure import Figure, figure_of


def imbalance_figure(
    exchanges: Sequence[str], ranks: Sequence[int], shares: Sequence[Sequence[float | None]]
) -> Figure:
    """One row per exchange in order, one column per rank; ``shares`` are rows received over the mean."""
    most = max((abs(each - 1) for row in shares for each in row if each is not None), default=0.0) or 0.01
    trace = {
        "type": "heatmap",
        "z": [list(row) for row in shares],
        "x": [str(rank) for rank in ranks],
        "y": list(exchanges),
        "zmin": 1 - most,
        "zmax": 1 + most,
        "colorscale": [[0, "var(--nvlink)"], [0.5, "var(--band)"], [1, "var(--ib)"]],
        "colorbar": {"title": {"text": "of the mean", "side": "right"}, "thickness": 10, "nticks": 5},
        "hovertemplate": "rank %{x}, %{y}<br>%{z:.3f} of the mean<extra></extra>",
        "hoverongaps": False,
    }
    layout = {
        "xaxis": {"title": {"text": "rank"}, "type": "category", "showgrid": False},
        "yaxis": {"autorange": "reversed", "type": "category", "showgrid": False, "automargin": True},
    }
    return figure_of([trace], layout)

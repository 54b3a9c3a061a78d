"""The roofline of a GPU with the expert GEMMs of several batches on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tracer.timing.roofline import RoofPoint, ridge

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from tracer.mesh.hardware import Hardware

TERA = 1e12
_COLOURS = ("var(--soft)", "var(--token)", "var(--kv)", "var(--strong-tp)")


def roofline_figure(
    hardware: Hardware, series: Mapping[str, Sequence[RoofPoint]], rate: str = "bf16_flops"
) -> Figure:
    """Attainable TFLOPs per second over FLOPs per byte, both logarithmic; one series of points per name.

    Raises:
        ConfigError: when no source was seen for a rate of the hardware.
    """
    import plotly.graph_objects as go

    peak, corner = hardware.need(rate, "draw its roof"), ridge(hardware, rate)
    points = [point.intensity for row in series.values() for point in row if point.intensity > 0]
    low, high = min([corner / 1000, *points]), max([corner * 20, *points])
    x = np.geomspace(low, high, 200)
    roof = np.minimum(peak, x * peak / corner) / TERA
    figure = go.Figure(
        go.Scatter(x=x, y=roof, name=f"{hardware.name}, {rate.removesuffix('_flops').upper()}", mode="lines")
    )
    figure.data[0].line.color = "var(--ink)"
    for colour, (name, row) in zip(_cycle(len(series)), series.items(), strict=True):
        figure.add_trace(_points(row, name, colour))
    # A vertical line's label would stand at 10 to the power of the corner on a logarithmic axis.
    figure.add_scatter(
        x=[corner, corner],
        y=[low * peak / corner / TERA, peak / TERA],
        name=f"ridge, {corner:.0f} FLOP/B",
        mode="lines",
        line={"color": "var(--soft)", "dash": "dash", "width": 1},
    )
    figure.update_xaxes(type="log", dtick=1, title_text="intensity (FLOP/B)")
    figure.update_yaxes(type="log", dtick=1, title_text="attainable TFLOP/s")
    return figure


def _cycle(count: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(count)]


def _points(row: Sequence[RoofPoint], name: str, colour: str) -> object:
    """Markers of one series; hover tells the batch and the rows of an expert."""
    import plotly.graph_objects as go

    return go.Scatter(
        x=[point.intensity for point in row],
        y=[point.flops_per_s / TERA for point in row],
        mode="lines+markers",
        name=name,
        marker={"color": colour, "size": 6 if len(row) > 1 else 12},
        line={"color": colour, "dash": "dot"},
        customdata=[[point.tokens, point.load.tokens_per_expert, point.bound] for point in row],
        hovertemplate="%{customdata[0]:,} tokens, %{customdata[1]:.3g} an expert that is hit<br>"
        "%{x:.3g} FLOP/B, %{customdata[2]}-bound<extra></extra>",
    )

"""The roofline of a GPU with the expert GEMMs of several batches on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from layouts.charts.figure import Figure, Trace, figure_of
from tracer.timing.roofline import RoofPoint, ridge

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware

TERA = 1e12
ROOF_POINTS = 200
_COLOURS = ("var(--soft)", "var(--token)", "var(--kv)", "var(--strong-tp)")


def roofline_figure(
    hardware: Hardware, series: Mapping[str, Sequence[RoofPoint]], rate: str = "bf16_flops"
) -> Figure:
    """Attainable TFLOPs per second over FLOPs per byte, both logarithmic; one series of points per name.

    Raises:
        ConfigError: when no source was seen for a rate of the hardware.
    """
    peak, corner = hardware.need(rate, "draw its roof"), ridge(hardware, rate)
    points = [point.intensity for row in series.values() for point in row if point.intensity > 0]
    low, high = min([corner / 1000, *points]), max([corner * 20, *points])
    x = [low * (high / low) ** (place / (ROOF_POINTS - 1)) for place in range(ROOF_POINTS)]
    roof = {
        "type": "scatter",
        "x": x,
        "y": [min(peak, each * peak / corner) / TERA for each in x],
        "name": f"{hardware.name}, {rate.removesuffix('_flops').upper()}",
        "mode": "lines",
        "line": {"color": "var(--ink)"},
    }
    marks = [
        _points(row, name, colour)
        for colour, (name, row) in zip(_cycle(len(series)), series.items(), strict=True)
    ]
    # A vertical line's label would stand at 10 to the power of the corner on a logarithmic axis.
    edge = {
        "type": "scatter",
        "x": [corner, corner],
        "y": [low * peak / corner / TERA, peak / TERA],
        "name": f"ridge, {corner:.0f} FLOP/B",
        "mode": "lines",
        "line": {"color": "var(--soft)", "dash": "dash", "width": 1},
    }
    axis = {"type": "log", "dtick": 1}
    layout = {
        "xaxis": {**axis, "title": {"text": "intensity (FLOP/B)"}},
        "yaxis": {**axis, "title": {"text": "attainable TFLOP/s"}},
    }
    return figure_of([roof, *marks, edge], layout)


def _cycle(count: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(count)]


def _points(row: Sequence[RoofPoint], name: str, colour: str) -> Trace:
    """Markers of one series; hover tells the batch and the rows of an expert."""
    return {
        "type": "scatter",
        "x": [point.intensity for point in row],
        "y": [point.flops_per_s / TERA for point in row],
        "mode": "lines+markers",
        "name": name,
        "marker": {"color": colour, "size": 6 if len(row) > 1 else 12},
        "line": {"color": colour, "dash": "dot"},
        "customdata": [[point.tokens, point.load.tokens_per_expert, point.bound] for point in row],
        "hovertemplate": "%{customdata[0]:,} tokens, %{customdata[1]:.3g} an expert that is hit<br>"
        "%{x:.3g} FLOP/B, %{customdata[2]}-bound<extra></extra>",
    }

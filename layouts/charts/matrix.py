"""A GPU x GPU matrix with NVLink domains as bands: NVLink inside, InfiniBand off the diagonal."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from layouts.charts.figure import Figure, Trace, figure_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_RANKS = 256


def matrix_figure(matrix: NDArray[np.int64], nvlink_domains: NDArray[np.int64], unit: str) -> Figure:
    """Senders from top to bottom, receivers to the right, both ``[ranks]``; cells of nothing stay empty.

    ``nvlink_domains`` has the NVLink domain of each rank; a line is drawn where it changes. Both tiers
    share one scale of shades, so that a cell's darkness can be read across them.
    """
    inside = nvlink_domains[:, None] == nvlink_domains[None, :]
    most = int(matrix.max()) or 1
    tiers = (("NVLink", inside, "var(--nvlink)"), ("InfiniBand", ~inside, "var(--ib)"))
    traces = [_tier(name, matrix, mask, colour, most, unit) for name, mask, colour in tiers]
    numbers = nvlink_domains.tolist()
    edges = [place + 0.5 for place, (a, b) in enumerate(pairwise(numbers)) if a != b]
    layout = {
        "margin": {"t": 88},
        "shapes": [line for at in edges for line in _cross(at, len(numbers))],
        "xaxis": {"title": {"text": "to GPU"}, "constrain": "domain", "showgrid": False, "zeroline": False},
        "yaxis": {
            "title": {"text": "from GPU"},
            "autorange": "reversed",
            "scaleanchor": "x",
            "constrain": "domain",
            "showgrid": False,
            "zeroline": False,
        },
    }
    return figure_of(traces, layout)


def _tier(
    name: str, matrix: NDArray[np.int64], mask: NDArray[np.bool_], colour: str, most: int, unit: str
) -> Trace:
    """One tier's cells; the others of the matrix are empty."""
    shown = [
        [int(value) if value and there else None for value, there in zip(row, keep, strict=True)]
        for row, keep in zip(matrix.tolist(), mask.tolist(), strict=True)
    ]
    place = 0.0 if name == "NVLink" else 0.55
    return {
        "type": "heatmap",
        "z": shown,
        "zmin": 0,
        "zmax": most,
        "colorscale": [[0, "var(--band)"], [1, colour]],
        "colorbar": {
            "title": {"text": name, "side": "top"},
            "orientation": "h",
            "x": place,
            "xanchor": "left",
            "y": 1.01,
            "yanchor": "bottom",
            "len": 0.45,
            "thickness": 10,
            "nticks": 3,
            "tickangle": 0,
        },
        "hovertemplate": f"GPU %{{y}} → %{{x}}<br>%{{z:,}} {unit} over {name}<extra></extra>",
        "hoverongaps": False,
    }


def _cross(at: float, ranks: int) -> list[dict[str, Any]]:
    """Lines across and down where an NVLink domain ends."""
    ends, line = (-0.5, ranks - 0.5), {"color": "var(--soft)", "width": 1}
    return [
        {"type": "line", "x0": at, "x1": at, "y0": ends[0], "y1": ends[1], "line": line},
        {"type": "line", "x0": ends[0], "x1": ends[1], "y0": at, "y1": at, "line": line},
    ]

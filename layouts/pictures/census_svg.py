"""The census as one SVG string: who sends copies to whom, and each expert's load."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from layouts.svg.map import document
from layouts.svg.pen import Pen
from tracer.mesh.cluster import nvlink_domains_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.census.result import Census

    Int64s = NDArray[np.int64]

MAX_CELLS = 128
MAX_BARS = 512
SHADES = 8
SIDE, BARS_HEIGHT = 448.0, 96.0
LEFT, TOP, GAP, FOOT = 64.0, 72.0, 56.0, 56.0


def census_svg(census: Census, theme: str = "auto") -> str:
    """Copies by home and GPU of the expert as a matrix, over bars of the picks of each expert.

    Up to ``MAX_CELLS`` ranks a cell is a pair of GPUs; beyond, a pair of NVLink domains (or runs of them).
    Shades are eighths of the largest cell; picks are summed in runs beyond ``MAX_BARS`` experts.
    """
    pen = Pen.of(theme)
    matrix, inside, unit = _cells(census)
    width, height = LEFT + SIDE + 24, TOP + SIDE + GAP + BARS_HEIGHT + FOOT
    label = (
        f"Census of {census.tokens:,} tokens in {len(census.layers)} MoE layers: "
        f"{int(matrix.sum()):,} copies, at most {int(matrix.max()):,} of one {unit} for another"
    )
    body = "".join(
        (
            f'<rect width="{width:g}" height="{height:g}" {pen.fill("page")}/>',
            pen.text(LEFT, 28, census.scenario.name or "Census", "ink", 18, weight=600),
            pen.text(
                LEFT, 48, f"Copies from home (down) to the expert's GPU (across), by {unit}", "soft", 13
            ),
            *_matrix(matrix, inside, pen),
            *_key(int(matrix.max()), pen),
            *_bars(census.load_by_expert, TOP + SIDE + GAP, pen),
        )
    )
    return document(width, height, body, pen, label)


def _cells(census: Census) -> tuple[Int64s, NDArray[np.bool_], str]:
    """(copies ``[from, to]``, which cells stay inside an NVLink domain, what a cell is)."""
    mesh, cluster = census.scenario.mesh, census.scenario.cluster
    if mesh.world_size <= MAX_CELLS:
        nvlink_domains = nvlink_domains_of(cluster, np.arange(mesh.world_size))
        return census.copies, nvlink_domains[:, None] == nvlink_domains[None, :], "GPU"
    run = -(-cluster.nvlink_domains // MAX_CELLS)
    found = np.zeros((-(-cluster.nvlink_domains // run),) * 2, np.int64)
    for part in census.parts:
        places = nvlink_domains_of(cluster, mesh.stage_lists()[part.stage]) // run
        np.add.at(found, (places[:, None], places[None, :]), part.traffic.copies)
    unit = cluster.domain_word if run == 1 else f"{run} {cluster.domain_word}s"
    return found, np.eye(len(found), dtype=bool), unit


def _matrix(matrix: Int64s, inside: NDArray[np.bool_], pen: Pen) -> Iterator[str]:
    """One path per shade and tier; cells of nothing stay empty."""
    cells, step = len(matrix), SIDE / len(matrix)
    most = int(matrix.max())
    shades = -(-matrix * SHADES // max(1, most))
    yield f'<rect x="{LEFT:g}" y="{TOP:g}" width="{SIDE:g}" height="{SIDE:g}" {pen.fill("band")}/>'
    yield f'<g transform="translate({LEFT:g} {TOP:g}) scale({step:g})">'
    for colour, where in (("nvlink", inside), ("ib", ~inside)):
        for shade in range(1, SHADES + 1):
            rows, columns = np.nonzero(where & (shades == shade))
            if len(rows):
                path = "".join(
                    f"M{x} {y}h1v1h-1z" for y, x in zip(rows.tolist(), columns.tolist(), strict=True)
                )
                yield f'<path d="{path}" fill-opacity="{shade / SHADES:g}" {pen.fill(colour)}/>'
    yield "</g>"
    yield pen.text(LEFT - 8, TOP + 12, "0", "soft", 12, anchor="end")
    yield pen.text(LEFT - 8, TOP + SIDE, f"{cells - 1:,}", "soft", 12, anchor="end")
    yield pen.text(LEFT + SIDE, TOP + SIDE + 16, f"{cells - 1:,}", "soft", 12, anchor="end")


def _key(most: int, pen: Pen) -> Iterator[str]:
    y = TOP + SIDE + 16
    for x, colour, words in ((LEFT, "nvlink", "NVLink"), (LEFT + 88, "ib", "InfiniBand")):
        yield f'<rect x="{x:g}" y="{y - 10:g}" width="12" height="12" {pen.fill(colour)}/>'
        yield pen.text(x + 18, y, words, "soft", 12)
    yield pen.text(LEFT + 196, y, f"full shade: {most:,} copies", "soft", 12)


def _bars(load: Int64s, top: float, pen: Pen) -> Iterator[str]:
    """The picks of each expert (or run of experts) over their mean."""
    run = -(-len(load) // MAX_BARS)
    padded = np.pad(load, (0, -len(load) % run))
    bars = padded.reshape(-1, run).sum(1)
    most, width = max(1, int(bars.max())), SIDE / len(bars)
    bottom = top + BARS_HEIGHT
    path = "".join(
        f"M{LEFT + place * width:.4g} {bottom:g}v-{BARS_HEIGHT * value / most:.4g}"
        f"h{0.8 * width:.4g}V{bottom:g}z"
        for place, value in enumerate(bars.tolist())
        if value
    )
    mean = bottom - BARS_HEIGHT * float(bars.mean()) / most
    what = "expert" if run == 1 else f"{run} experts"
    yield f'<path d="{path}" {pen.fill("token")}/>'
    yield pen.line(f"M{LEFT:g} {mean:.4g}h{SIDE:g}", "ink", 1, ' stroke-dasharray="4 3"')
    yield pen.line(f"M{LEFT:g} {bottom:g}h{SIDE:g}", "edge", 1)
    words = f"Picks by {what}: at most {most:,}, mean {float(bars.mean()):,.0f} (dashed)"
    yield pen.text(LEFT, bottom + 24, words, "soft", 13)

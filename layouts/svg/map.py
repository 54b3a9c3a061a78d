"""The scene as one SVG string: the map, with the transfers and marks of a hop or of the whole trip."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from layouts.scene.scene import Band, Fold, GpuBox, Rail, Scene
from layouts.svg.captions import busiest_line, counters, hop_title, trip_title
from layouts.svg.hop import hop_layer, trip_layer
from layouts.svg.legend import legend, legend_height
from layouts.svg.pen import Pen

TITLE_HEIGHT, MARGIN = 64.0, 16.0
FONTS = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"
LINE_HEIGHT = 20.0  # of the busiest link, named under the title of several tokens
BESIDE, LETTER = 200.0, 5.6  # width from which a band's layers stand beside its name; of a small letter
MIN_WIDTH = 592.0  # room for the legend and the totals of a mesh of few columns


def render_svg(scene: Scene, hop: int | None = None, theme: str = "auto") -> str:
    """A picture with title and legend: of one hop, or of the whole trip when ``hop`` is None.

    ``theme``: ``light`` and ``dark`` are fixed; ``auto`` is light, and dark where the reader's system
    is; ``page`` leaves the colours to the classes of the page around it.

    Raises:
        ValueError: for an unknown theme, or a hop that the trip does not have.
    """
    if hop is not None and not 0 <= hop < len(scene.hops):
        raise ValueError(f"hop={hop} must be from 0 to {len(scene.hops) - 1}")
    pen = Pen.of(theme)
    inner = max(scene.width, MIN_WIDTH)
    top, foot = title_height(scene), legend_height(scene, inner)
    width, height = inner + 2 * MARGIN, scene.height + top + foot + MARGIN
    body = "".join(
        (
            f'<rect width="{width:g}" height="{height:g}" {pen.fill("page")}/>',
            *_title(scene, hop, pen),
            f'<g transform="translate({MARGIN:g} {top:g})">',
            *map_parts(scene, pen, touched=_touched(scene, hop)),
            *(trip_layer(scene, pen) if hop is None else hop_layer(scene, hop, pen)),
            "</g>",
            *legend(scene, MARGIN, height - foot + 8, inner, pen),
        )
    )
    return document(width, height, body, pen, _label(scene, hop))


def title_height(scene: Scene) -> float:
    """Room above the map."""
    return TITLE_HEIGHT + (LINE_HEIGHT if scene.multi_token else 0.0)


def document(width: float, height: float, body: str, pen: Pen, label: str) -> str:
    """The SVG element around a body, with its name for screen readers and its colours."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(label)}" '
        f'font-family="{FONTS}">'
        f"{pen.style_sheet()}{body}</svg>"
    )


def _label(scene: Scene, hop: int | None) -> str:
    if hop is None:
        return f"{scene.name}: {scene.summary}"
    words, busiest = scene.hops[hop].words, busiest_line(scene, scene.hops[hop])
    return f"{scene.name}, hop {hop}: {words.title}. {words.what} {busiest}".rstrip()


def _touched(scene: Scene, hop: int | None) -> frozenset[int]:
    shown = scene.hops if hop is None else scene.hops[: hop + 1]
    return frozenset(rank for each in shown for rank in each.newly_touched)


def _title(scene: Scene, hop: int | None, pen: Pen) -> Iterator[str]:
    here = None if hop is None else scene.hops[hop]
    title, line = trip_title(scene), scene.summary
    if here is not None:
        title, line = f"{scene.name} · {hop_title(here)}", f"{counters(scene, here)} so far"
    yield pen.text(MARGIN, 28, title, "ink", 17, weight=600)
    yield pen.text(MARGIN, 48, line, "soft", 13)
    busiest = busiest_line(scene, here)
    if busiest:
        yield pen.text(MARGIN, 48 + LINE_HEIGHT, busiest, "soft", 13)


def map_parts(scene: Scene, pen: Pen, *, touched: frozenset[int]) -> Iterator[str]:
    """Bands, rails, folds and boxes, back to front."""
    for band in scene.bands:
        yield draw_band(band, pen)
    for rail in scene.rails:
        yield _rail(rail, pen)
    for fold in scene.folds:
        yield draw_fold(fold, pen)
    for line in scene.lines:
        if line.label:
            yield pen.text(10, line.y + line.height / 2 + 4, line.label, "soft", 13)
        for box in line.gpus:
            yield draw_gpu(box, pen, lit=box.rank in touched)


def draw_band(band: Band, pen: Pen) -> str:
    """A stage's box and its words."""
    box = (
        f'<rect x="{band.x:g}" y="{band.y:g}" width="{band.width:g}" height="{band.height:g}" rx="10" '
        f"{pen.fill('band')}/>"
    )
    if not band.label:
        return box + pen.text(band.x + 12, band.y + 20, band.layers, "soft", 12)
    if band.width > BESIDE:
        label = f'{escape(band.label)}<tspan dx="10" font-weight="400">{escape(band.layers)}</tspan>'
        return box + pen.text(band.x + 12, band.y + 20, label, "soft", 13, weight=600, raw=True)
    # Too narrow for both on a line: the layers stand below the stage's name, where they fit.
    head = pen.text(band.x + 12, band.y + 20, escape(band.label), "soft", 13, weight=600, raw=True)
    forms = (band.layers, band.layers.partition(" ")[2], "")
    below = next(text for text in forms if len(text) * LETTER <= band.width - 16)
    return box + head + (pen.text(band.x + 12, band.y + 36, below, "soft", 11) if below else "")


def _rail(rail: Rail, pen: Pen) -> str:
    line = (
        f'<path d="M{rail.x:g} {rail.top:g}V{rail.bottom:g}" {pen.stroke("edge")} stroke-width="1" '
        'stroke-dasharray="2 5"/>'
    )
    return line + (pen.text(rail.x, 18, rail.label, "soft", 12, anchor="middle") if rail.label else "")


def draw_fold(fold: Fold, pen: Pen) -> str:
    """A thin dashed line with the words of what it stands for."""
    middle = fold.y + fold.height / 2
    width = 8 * len(fold.text) + 24
    center = fold.x + fold.width / 2
    return (
        f'<path d="M{fold.x:g} {middle:g}H{fold.x + fold.width:g}" {pen.stroke("edge")} stroke-width="2" '
        'stroke-dasharray="6 4"/>'
        f'<rect x="{center - width / 2:g}" y="{fold.y:g}" width="{width:g}" height="{fold.height:g}" rx="12" '
        f"{pen.fill('page')}/>" + pen.text(center, middle + 4, fold.text, "soft", 12, anchor="middle")
    )


def draw_gpu(box: GpuBox, pen: Pen, *, lit: bool) -> str:
    """One GPU; ``lit`` when the token touched it."""
    size = 17 if box.rank < 100_000 else 13
    edge = "ink" if lit else "edge"
    experts = pen.text(box.x + 9, box.y + box.height - 9, box.experts, "soft", 12) if box.experts else ""
    return (
        f'<g class="gpu" data-rank="{box.rank}"><rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="8" {pen.both(f"tint{box.tint}", edge)} '
        f'stroke-width="{1.8 if lit else 1}"/>'
        + pen.text(
            box.x + 9, box.y + 22, f"{box.rank}", "ink" if lit else "soft", size, weight=600 if lit else 400
        )
        + experts
        + "</g>"
    )

"""The K/V hand-over as one SVG string, with the pen and the colours of the map."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from layouts.pictures.pool_map import LETTER
from layouts.svg.legend import LEGEND_HEIGHT
from layouts.svg.map import MARGIN, TITLE_HEIGHT, document, draw_band, draw_fold
from layouts.svg.pen import Pen

if TYPE_CHECKING:
    from layouts.pictures.pool_map import Arrow, KeeperBox, PoolColumn, PoolMap


def render_pool_svg(picture: PoolMap, theme: str = "auto") -> str:
    """The picture with title, totals and legend; ``theme`` is as for :func:`layouts.svg.map.render_svg`.

    Its name for a screen reader says the totals, its description every arrow.

    Raises:
        ValueError: for an unknown theme.
    """
    pen = Pen.of(theme)
    width = picture.width + 2 * MARGIN
    height = picture.height + TITLE_HEIGHT + LEGEND_HEIGHT + MARGIN
    body = "".join(
        (
            f"<desc>{escape(picture.description)}</desc>",
            f'<rect width="{width:g}" height="{height:g}" {pen.fill("page")}/>',
            pen.text(MARGIN, 28, picture.title, "ink", 17, weight=600),
            pen.text(MARGIN, 48, picture.summary, "soft", 13),
            f'<g transform="translate({MARGIN:g} {TITLE_HEIGHT:g})">',
            *(part for column in picture.columns for part in _column(column, pen)),
            *(_line(arrow, pen) for arrow in picture.arrows),
            *(_chip(arrow, pen) for arrow in picture.arrows),
            *_rest(picture, pen),
            "</g>",
            *_legend(height - LEGEND_HEIGHT + 8, pen),
        )
    )
    return document(width, height, body, pen, f"{picture.title}. {picture.summary}")


def _column(column: PoolColumn, pen: Pen) -> Iterator[str]:
    heading, name, place = column.heading
    yield pen.text(column.x, 14, heading, "ink", 13, weight=600)
    yield pen.text(column.x, 32, name, "soft", 12)
    yield pen.text(column.x, 50, place, "soft", 12)
    for band in column.bands:
        yield draw_band(band, pen)
    for box in column.boxes:
        yield _box(box, pen)
    if column.fold is not None:
        yield draw_fold(column.fold, pen)


def _box(box: KeeperBox, pen: Pen) -> str:
    square = f'x="{box.x + box.width - 20:g}" y="{box.y + 8:g}" width="12" height="12" rx="2"'
    return (
        f'<g class="keeper" data-rank="{box.rank}"><rect x="{box.x:g}" y="{box.y:g}" '
        f'width="{box.width:g}" height="{box.height:g}" rx="8" {pen.both("tint4", "ink")} '
        f'stroke-width="1.4"/><rect {square} {pen.fill("kv")}/>'
        + pen.text(box.x + 9, box.y + 21, f"GPU {box.rank:,}", "ink", 15, weight=600)
        + pen.text(box.x + box.width - 26, box.y + 19, box.node, "soft", 12, anchor="end")
        + "".join(
            pen.text(box.x + 9, box.y + 39 + 16 * line, words, "soft", 12)
            for line, words in enumerate(box.keeps)
        )
        + "</g>"
    )


def _line(arrow: Arrow, pen: Pen) -> str:
    """A dashed line, as InfiniBand is on the map, and its head."""
    tip = arrow.path.rpartition("H")[2]
    half = max(5.0, arrow.width)
    head = f"M{tip} {arrow.y - half:g}L{float(tip) + 8:g} {arrow.y:g}L{tip} {arrow.y + half:g}z"
    ends = f'data-from="{arrow.source}" data-to="{arrow.destination}" data-bytes="{arrow.payload_bytes}"'
    line = pen.line(arrow.path, "ib", arrow.width, ' stroke-dasharray="8 3"')
    return f'<g class="arrow" {ends}>{line}<path d="{head}" {pen.fill("ib")}/></g>'


def _chip(arrow: Arrow, pen: Pen) -> str:
    width = LETTER * len(arrow.label) + 12
    return (
        f'<rect x="{arrow.x:g}" y="{arrow.y - 10:g}" width="{width:g}" height="20" rx="10" '
        f"{pen.fill('page')}/>"
        + pen.text(arrow.x + width / 2, arrow.y + 4, arrow.label, "ink", 12, anchor="middle")
    )


def _rest(picture: PoolMap, pen: Pen) -> Iterator[str]:
    if picture.rest:
        middle = picture.width / 2
        yield pen.text(middle, picture.height - 6, picture.rest, "soft", 12, anchor="middle")


def _legend(y: float, pen: Pen) -> Iterator[str]:
    x = MARGIN
    words = (("ib", "InfiniBand between the pools, thicker for more bytes"), ("kv", "K/V it keeps"))
    for kind, text in words:
        yield pen.swatch(kind, x, y)
        yield pen.text(x + 34, y + 4, text, "soft", 12)
        x += 34 + LETTER * len(text) + 20

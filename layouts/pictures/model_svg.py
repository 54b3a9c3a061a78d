"""What a model is made of, as one SVG string: a strip of its layers by kind, and its parameters by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from layouts.scene.grid import TINTS
from layouts.svg.map import document
from layouts.svg.pen import Pen
from tracer.display import format_count

if TYPE_CHECKING:
    from tracer.memory.anatomy import Anatomy

WIDTH, MARGIN, TOP = 900.0, 16.0, 84.0
PER_ROW, MAX_ROWS = 64, 8
CELL_HEIGHT, ROW_GAP = 22.0, 26.0
LINE = 23.0
NAME_WIDTH, FIGURE_WIDTH = 120.0, 170.0


def model_svg(found: Anatomy, theme: str = "auto") -> str:
    """A column per layer: its attention above, its feed-forward part below, a letter and a tint per kind.

    Under the strip a bar per part of the parameters: all of them, and in front those that one token uses.
    Of a model with more than 512 layers the first 512 are drawn, and the strip says so.
    """
    pen = Pen.of(theme)
    above, below = _columns(found)
    shown = min(len(above), PER_ROW * MAX_ROWS)
    rows = -(-shown // PER_ROW)
    words = [*_words(above), *_words(below)]
    strip_height = rows * (2 * CELL_HEIGHT + ROW_GAP)
    bars_top = TOP + strip_height + LINE * len(words) + 34
    count = found.count
    height = bars_top + LINE * (len(count.parts) + 1) + MARGIN
    total, active = format_count(count.total), format_count(count.active)
    told = f"{len(above)} layers, {total} parameters, {active} used by a token"
    body = "".join(
        (
            f'<rect width="{WIDTH:g}" height="{height:g}" {pen.fill("page")}/>',
            pen.text(MARGIN, 30, found.spec.name or "This model", "ink", 18, weight=600),
            pen.text(MARGIN, 54, told + _unshown(len(above), shown), "soft", 14),
            *_strip(above[:shown], below[:shown], pen),
            *_legend(words, TOP + strip_height, pen),
            *_bars(found, bars_top, pen),
        )
    )
    return document(WIDTH, height, body, pen, f"{found.spec.name or 'Model'}: {told}")


class HalfLayer(NamedTuple):
    """Half a layer: its letter, what that half is in words, and a tint for each different one."""

    letter: str
    words: str
    tint: int


def _columns(found: Anatomy) -> tuple[list[HalfLayer], list[HalfLayer]]:
    """The attention and the feed-forward part of every layer."""
    titles = [found.spec.kind_of(layer).title.split(" + ", 1) for layer in range(1, found.spec.layers + 1)]
    above, below = found.letters()
    return _cells(above, [title[0] for title in titles]), _cells(below, [title[1] for title in titles])


def _cells(letters: str, words: list[str]) -> list[HalfLayer]:
    tints = {text: index % TINTS for index, text in enumerate(dict.fromkeys(words))}
    return [HalfLayer(letter, text, tints[text]) for letter, text in zip(letters, words, strict=True)]


def _unshown(layers: int, shown: int) -> str:
    return "" if layers == shown else f"; the first {shown} are drawn"


def _strip(above: list[HalfLayer], below: list[HalfLayer], pen: Pen) -> Iterator[str]:
    width = (WIDTH - 2 * MARGIN) / min(PER_ROW, max(len(above), 24))
    for index, (attention, feed_forward) in enumerate(zip(above, below, strict=True)):
        row, column = divmod(index, PER_ROW)
        x, y = MARGIN + column * width, TOP + row * (2 * CELL_HEIGHT + ROW_GAP)
        yield _cell(x, y, width, attention, pen)
        yield _cell(x, y + CELL_HEIGHT, width, feed_forward, pen)
        if column == 0 or (index + 1) % 8 == 0 or index == len(above) - 1:
            middle = x + width / 2
            yield pen.text(middle, y + 2 * CELL_HEIGHT + 14, f"{index + 1}", "soft", 12, anchor="middle")


def _cell(x: float, y: float, width: float, cell: HalfLayer, pen: Pen) -> str:
    box = (
        f'<rect x="{x + 0.5:g}" y="{y + 0.5:g}" width="{width - 1:g}" height="{CELL_HEIGHT - 1:g}" rx="2" '
        f"{pen.both(f'tint{cell.tint}', 'edge')}/>"
    )
    return box + pen.text(x + width / 2, y + 15.5, cell.letter, "ink", 12, anchor="middle")


def _words(cells: list[HalfLayer]) -> list[tuple[HalfLayer, str]]:
    """A line per different half of a layer: what it is, and of how many layers."""
    counts = Counter(cells)
    return [
        (cell, f"{cell.words}: {number} layer{'s' if number > 1 else ''}") for cell, number in counts.items()
    ]


def _legend(words: list[tuple[HalfLayer, str]], top: float, pen: Pen) -> Iterator[str]:
    for index, (cell, text) in enumerate(words):
        y = top + LINE * index
        yield _cell(MARGIN, y, 18, cell, pen)
        yield pen.text(MARGIN + 28, y + 15.5, text, "ink", 13)


def _bars(found: Anatomy, top: float, pen: Pen) -> Iterator[str]:
    """A row per part: its name, a bar of all its parameters with those of one token in front, figures."""
    parts = found.count.parts
    most = max((part.total for part in parts), default=1) or 1
    left = MARGIN + NAME_WIDTH + FIGURE_WIDTH + 14
    room = WIDTH - MARGIN - left
    figures = left - 14
    yield pen.text(MARGIN, top, "Parameters by part", "ink", 14, weight=600)
    yield pen.text(figures, top, "all / per token", "soft", 12, anchor="end")
    for index, part in enumerate(parts):
        y = top + LINE * (index + 1)
        both = f"{format_count(part.total)} / {format_count(part.active)}"
        yield pen.text(MARGIN, y, str(part.part), "ink", 13)
        yield pen.text(figures, y, both, "ink", 13, anchor="end")
        yield _bar(left, y - 11, room * part.total / most, pen.both("tint0", "edge"))
        yield _bar(left, y - 11, room * part.active / most, pen.fill("nvlink"))


def _bar(x: float, y: float, width: float, look: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{max(width, 1):.1f}" height="13" {look}/>'

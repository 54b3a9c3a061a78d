"""Tokens sorted by expert for a grouped GEMM, as one SVG string: picks as they come, and sorted rows."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from layouts.scene.grid import TINTS
from layouts.svg.map import document
from layouts.svg.pen import Pen

if TYPE_CHECKING:
    from tracer.batch.permutation import Permutation

MAX_ROWS = 64
LONG = 60
CELL_WIDTH, CELL_HEIGHT = 34.0, 26.0
MARGIN, TOP, BETWEEN, FOOT = 16.0, 76.0, 112.0, 66.0


def permutation_svg(found: Permutation, theme: str = "auto") -> str:
    """Each pick's line from its token to its row; runs of experts below, with the empty ones named.

    Raises:
        ValueError: for more than ``MAX_ROWS`` rows.
    """
    rows = len(found.gather)
    if rows > MAX_ROWS:
        raise ValueError(f"rows={rows} must be at most {MAX_ROWS}")
    pen = Pen.of(theme)
    width = 2 * MARGIN + max(found.scatter.size, rows, 12) * CELL_WIDTH
    height = TOP + 2 * CELL_HEIGHT + BETWEEN + FOOT
    empty = [expert for expert, count in enumerate(found.counts.tolist()) if not count]
    tokens, experts = len(found.scatter), len(found.counts)
    told = f"{rows} picks of {tokens} tokens, sorted by expert"
    label = f"{told}: {experts - len(empty)} of {experts} experts have rows"
    body = "".join(
        (
            f"<desc>{escape('; '.join(_runs(found)))}</desc>",
            f'<rect width="{width:g}" height="{height:g}" {pen.fill("page")}/>',
            pen.text(MARGIN, 26, "Permute: tokens sorted by expert", "ink", 17, weight=600),
            pen.text(MARGIN, 46, label, "soft", 13),
            *_lines(found, pen),
            *_picks(found, pen),
            *_rows(found, pen),
            pen.text(MARGIN, height - 12, _empty_words(empty), "soft", 12),
        )
    )
    return document(width, height, body, pen, label)


def _runs(found: Permutation) -> Iterator[str]:
    for expert, (start, end) in enumerate(zip(found.starts.tolist(), found.ends.tolist(), strict=True)):
        yield f"expert {expert}: rows {start} to {end - 1}" if end > start else f"expert {expert}: no rows"


def _empty_words(empty: list[int]) -> str:
    from layouts.scene.labels import runs_text

    if not empty:
        return "Every expert has rows."
    text = runs_text(empty)
    if len(text) > LONG:
        return f"{len(empty)} experts have no rows, yet a start and an end each."
    return f"No rows, yet a start and an end: expert{'s' if len(empty) > 1 else ''} {text}."


def _place(column: int) -> float:
    return MARGIN + column * CELL_WIDTH


def _lines(found: Permutation, pen: Pen) -> Iterator[str]:
    top = TOP + CELL_HEIGHT
    bottom = top + BETWEEN
    for row, (token, pick) in enumerate(zip(found.gather.tolist(), found.pick.tolist(), strict=True)):
        x0 = _place(token * found.scatter.shape[1] + pick) + CELL_WIDTH / 2
        x1, half = _place(row) + CELL_WIDTH / 2, (top + bottom) / 2
        yield pen.line(f"M{x0:g} {top:g}C{x0:g} {half:g} {x1:g} {half:g} {x1:g} {bottom:g}", "soft", 1)


def _picks(found: Permutation, pen: Pen) -> Iterator[str]:
    """One cell per pick, with the expert that it names; one tint per token."""
    of_row = [expert for expert, count in enumerate(found.counts.tolist()) for _ in range(count)]
    for token, row_of in enumerate(found.scatter.tolist()):
        middle = _place(token * len(row_of)) + len(row_of) * CELL_WIDTH / 2
        yield pen.text(middle, TOP - 6, f"t{token}", "soft", 12, anchor="middle")
        for pick, row in enumerate(row_of):
            text = f"e{of_row[row]}" if row >= 0 else "–"
            yield _cell(_place(token * len(row_of) + pick), TOP, text, token, pen)


def _rows(found: Permutation, pen: Pen) -> Iterator[str]:
    """One cell per row, with its token; under them one bracket per expert."""
    y = TOP + CELL_HEIGHT + BETWEEN
    for row, token in enumerate(found.gather.tolist()):
        yield _cell(_place(row), y, f"t{token}", token, pen)
    y += CELL_HEIGHT + 8
    for expert, (start, end) in enumerate(zip(found.starts.tolist(), found.ends.tolist(), strict=True)):
        if end > start:
            x0, x1 = _place(start) + 3, _place(end) - 3
            yield pen.line(f"M{x0:g} {y - 4:g}v4H{x1:g}v-4", "ink", 1.5)
            yield pen.text((x0 + x1) / 2, y + 16, f"e{expert}", "ink", 12, anchor="middle", weight=600)


def _cell(x: float, y: float, text: str, token: int, pen: Pen) -> str:
    box = (
        f'<rect x="{x + 1:g}" y="{y:g}" width="{CELL_WIDTH - 2:g}" height="{CELL_HEIGHT:g}" rx="4" '
        f"{pen.both(f'tint{token % TINTS}', 'edge')}/>"
    )
    return box + pen.text(x + CELL_WIDTH / 2, y + 17, text, "ink", 12, anchor="middle")

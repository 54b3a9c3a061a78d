"""A layer as planned and as recorded: two aligned rows of operations, as one SVG string."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from layouts.svg.map import document
from layouts.svg.pen import Pen
from tracer.display import format_bytes
from tracer.runs.diff import Status

if TYPE_CHECKING:
    from tracer.runs.diff import DiffRow

WIDE, TALL, GAP, LEFT, TOP, BETWEEN = 134.0, 62.0, 8.0, 100.0, 12.0, 34.0
WORDS = {
    Status.SAME: "same",
    Status.BYTES: "other bytes",
    Status.DTYPE: "other dtype",
    Status.GROUP: "other group",
}


def run_rows(rows: Sequence[DiffRow], theme: str = "auto") -> str:
    """The plan above, the recording below; what one side lacks is dashed, a pill says how a pair compares."""
    pen = Pen.of(theme)
    width = LEFT + max(1, len(rows)) * (WIDE + GAP) + 8
    low = TOP + TALL + BETWEEN
    planned, recorded = (sum(side is not None for side in sides) for sides in zip(*_sides(rows), strict=True))
    parts = [
        pen.text(0, TOP + 28, "the plan", "ink", 13, weight=600),
        pen.text(0, TOP + 45, f"{planned} ops", "soft", 12),
        pen.text(0, low + 28, "the run", "ink", 13, weight=600),
        pen.text(0, low + 45, f"{recorded} ops", "soft", 12),
    ]
    for place, row in enumerate(rows):
        x = LEFT + place * (WIDE + GAP)
        parts += _column(row, x, low, pen)
    label = (
        f"One layer: {planned} operations planned, {recorded} recorded, {sum(r.differs for r in rows)} differ"
    )
    return document(width, low + TALL + 12, "".join(parts), pen, label)


def _sides(rows: Sequence[DiffRow]) -> list[tuple[object, object]]:
    return [(row.planned, row.recorded) for row in rows] or [(None, None)]


def _column(row: DiffRow, x: float, low: float, pen: Pen) -> Iterator[str]:
    differs = row.differs
    if row.planned is not None:
        size = "" if row.planned.bytes is None else format_bytes(row.planned.bytes)
        count = "" if row.planned.elements is None else f"{row.planned.elements:,} elements"
        yield from _box(
            (x, TOP), (row.planned.hop.replace("_", "-"), count, f"{row.planned.dtype.upper()} · {size}"),
            row.planned.axis.upper(), pen, loud=False,
        )  # fmt: skip
    else:
        yield from _lack((x, TOP), "not in the plan", pen, loud=differs)
    if row.recorded is not None:
        op = row.recorded
        size = "" if op.bytes is None else format_bytes(op.bytes)
        shapes = op.shapes_text.replace("×1×", "×")
        yield from _box(
            (x, low), (str(op.kind).replace("_", "-"), shapes if len(shapes) < 24 else shapes[:22] + "…",
                       f"{op.dtype} · {size}"), "", pen, loud=differs,
        )  # fmt: skip
    else:
        yield from _lack((x, low), "not in the run", pen, loud=differs)
    if row.planned is not None and row.recorded is not None:
        words = WORDS.get(row.status, str(row.status))
        middle = TOP + TALL + BETWEEN / 2
        yield pen.line(f"M{x + WIDE / 2:g} {TOP + TALL:g}V{low:g}", "edge", 1.5)
        half = 8 + 3.2 * len(words)
        shape = f'x="{x + WIDE / 2 - half:g}" y="{middle - 10:g}" width="{2 * half:g}" height="20" rx="10"'
        yield f"<rect {shape} {pen.both('page', 'edge')}/>"
        colour = "soft" if row.status is Status.SAME else "ink"
        yield pen.text(x + WIDE / 2, middle + 4, words, colour, 12, anchor="middle")


def _box(
    at: tuple[float, float], lines: tuple[str, str, str], axis: str, pen: Pen, *, loud: bool
) -> Iterator[str]:
    x, y = at
    yield (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDE:g}" height="{TALL:g}" rx="8" '
        f"{pen.both('box', 'token' if loud else 'edge')}/>"
    )
    yield pen.text(x + 10, y + 19, lines[0], "ink", 12, weight=600)
    yield pen.text(x + 10, y + 37, lines[1], "soft", 12)
    yield pen.text(x + 10, y + 53, lines[2], "soft", 12)
    if axis:
        yield pen.text(x + WIDE - 8, y + 19, axis, "soft", 12, anchor="end")


def _lack(at: tuple[float, float], words: str, pen: Pen, *, loud: bool) -> Iterator[str]:
    x, y = at
    shape = (
        f'x="{x:g}" y="{y:g}" width="{WIDE:g}" height="{TALL:g}" rx="8" fill="none" stroke-dasharray="4 3"'
    )
    yield f"<rect {shape} {pen.stroke('token' if loud else 'edge')}/>"
    yield pen.text(x + WIDE / 2, y + 34, words, "ink" if loud else "soft", 12, anchor="middle")

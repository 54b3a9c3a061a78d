"""Operations of recorded ranks against time, to scale, as one SVG string."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layouts.svg.map import document
from layouts.svg.pen import Pen
from tracer.display import format_seconds

if TYPE_CHECKING:
    from tracer.runs.reading.recording import Op

WIDTH, LEFT, RIGHT, ROW, TOP, FOOT = 1184.0, 64.0, 16.0, 20.0, 28.0, 24.0
COLOURS = {"tp": "nvlink", "cp": "kv", "ep": "token", "etp-ep": "token", "etp": "token", "pp": "ib"}
KEY = (("tp", "TP"), ("cp", "CP"), ("ep", "experts"), ("pp", "pipeline"), ("", "others"))


@dataclass(frozen=True, slots=True)
class TimedOp:
    """An operation of a rank with its axis, and nanoseconds from the start: issued or begun, and ended."""

    rank: int
    op: Op
    axis: str
    start_ns: int
    end_ns: int | None


def run_timeline(ranks: Sequence[int], ops: Sequence[TimedOp], span_ns: int, theme: str = "auto") -> str:
    """One row per rank. An operation whose end was recorded is a bar, of others the moment of issue a line.

    The cursor is a line of class ``run-cursor`` at time 0; a page moves it over ``data-width``.
    """
    pen = Pen.of(theme)
    inner = WIDTH - LEFT - RIGHT
    scale = inner / max(1, span_ns)
    rows = {rank: TOP + place * ROW for place, rank in enumerate(ranks)}
    height = TOP + ROW * len(ranks) + FOOT
    paths: dict[str, list[str]] = defaultdict(list)
    for each in ops:
        x, y = LEFT + each.start_ns * scale, rows[each.rank] + 3
        length = 0.0 if each.end_ns is None else (each.end_ns - each.start_ns) * scale
        paths[COLOURS.get(each.axis, "soft")].append(
            f"M{x:.5g} {y:g}h{max(length, 1.5):.4g}v{ROW - 6:g}h-{max(length, 1.5):.4g}z"
        )
    body = [
        *_key(pen),
        *(
            pen.text(LEFT - 8, y + 14, str(rank), "soft", 12, anchor="end")
            + pen.line(f"M{LEFT:g} {y + ROW:g}h{inner:g}", "edge", 0.5)
            for rank, y in rows.items()
        ),
        *(f'<path d="{"".join(found)}" {pen.fill(colour)}/>' for colour, found in paths.items()),
        pen.text(LEFT, height - 6, "0", "soft", 12),
        pen.text(WIDTH - RIGHT, height - 6, format_seconds(span_ns * 1e-9), "soft", 12, anchor="end"),
        f'<line class="run-cursor s-ink" x1="{LEFT:g}" x2="{LEFT:g}" y1="{TOP:g}" y2="{height - FOOT:g}" '
        f'stroke="{pen.colours["ink"]}" stroke-width="1.5" data-left="{LEFT:g}" data-width="{inner:g}"/>',
    ]
    label = f"{len(ops):,} operations of {len(ranks)} ranks over {format_seconds(span_ns * 1e-9)}"
    return document(WIDTH, height, "".join(body), pen, label)


def _key(pen: Pen) -> Iterator[str]:
    x = LEFT
    for axis, words in KEY:
        yield f'<rect x="{x:g}" y="6" width="10" height="10" {pen.fill(COLOURS.get(axis, "soft"))}/>'
        yield pen.text(x + 16, 15, words, "soft", 12)
        x += 32 + 7 * len(words)

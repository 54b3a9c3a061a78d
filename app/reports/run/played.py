"""The run as it plays: ranks on a map, operations to scale on a time axis, and what a cursor lights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.reports.blocks import Block
from layouts.pictures.run_map import run_map
from layouts.pictures.run_timeline import TimedOp, run_timeline

if TYPE_CHECKING:
    from tracer.runs.reading.recording import Op
    from tracer.runs.report import RunReport

MAX_ROWS = 32
MAX_OPS = 6000
"""Operations that a page can play; of more, the last are taken."""


def played(report: RunReport, ranks: list[int], family: str) -> Block | None:
    """The player of some ranks' operations, of one family or of all; None where nothing was timed."""
    shown = ranks[:MAX_ROWS]
    timed = [
        (rank, op, start)
        for rank in shown
        for op in report.recording.ranks[rank].ops
        if (start := _start(op)) is not None and (not family or report.layout.families.of(op.group) == family)
    ]
    timed = sorted(timed, key=lambda each: each[2])[-MAX_OPS:]
    if not timed:
        return None
    first = timed[0][2]
    last = max(max(start, op.completed_ns or start) for _, op, start in timed)
    ops = [
        TimedOp(
            rank, op, report.layout.families.of(op.group) or "", start - first,
            None if op.completed_ns is None else max(op.completed_ns, start) - first,
        )
        for rank, op, start in timed
    ]  # fmt: skip
    span = max(1, last - first)
    groups: dict[tuple[int, ...], int] = {}
    rows: list[list[Any]] = []
    for each in ops:
        number = groups.setdefault(each.op.group.members, len(groups))
        words = f"{each.op.kind} {each.op.shapes_text} {each.op.dtype}".replace("_", "-")
        rows.append([each.start_ns, each.rank, number, words])
    return {
        "kind": "run",
        "name": "The run, played",
        "map": run_map(report, "page"),
        "timeline": run_timeline(shown, ops, span, "page"),
        "span_ns": span,
        "groups": [list(members[:4096]) for members in groups],
        "ops": rows,
    }


def _start(op: Op) -> int | None:
    return op.started_ns if op.started_ns is not None else op.created_ns

"""Recorded and planned operations as two aligned sequences (Needleman and Wunsch, J. Mol. Biol. 48, 1970).

An operation that one side lacks shifts nothing. What is left over on both sides and agrees in kind and
group is the same operation in another place.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracer.runs.planned import COUNTS, PlannedOp
from tracer.runs.reading.dtypes import is_integer, ours
from tracer.runs.reading.recording import Op, OpKind
from tracer.runs.shapes import Families, is_routing_counts


def align(
    recorded: Sequence[Op], planned: Sequence[PlannedOp], families: Families
) -> list[tuple[int | None, int | None]]:
    """Pairs of places, in order, with the greatest total of :func:`likeness` less 1 for each gap."""
    gap = -1
    height, width = len(recorded) + 1, len(planned) + 1
    table = [[0] * width for _ in range(height)]
    for i in range(height):
        for j in range(width):
            if i and j:
                match = table[i - 1][j - 1] + likeness(recorded[i - 1], planned[j - 1], families)
                table[i][j] = max(match, table[i - 1][j] + gap, table[i][j - 1] + gap)
            else:
                table[i][j] = gap * (i + j)
    pairs: list[tuple[int | None, int | None]] = []
    i, j = height - 1, width - 1
    while i or j:
        if (
            i
            and j
            and table[i][j] == table[i - 1][j - 1] + likeness(recorded[i - 1], planned[j - 1], families)
        ):
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif i and table[i][j] == table[i - 1][j] + gap:
            i -= 1
            pairs.append((i, None))
        else:
            j -= 1
            pairs.append((None, j))
    return pairs[::-1]


def likeness(op: Op, planned: PlannedOp, families: Families) -> int:
    """How well two operations fit: 6 alike, 4 in other bytes or dtype, 2 on another group, below −2 never."""
    if op.kind is not planned.kind or _metadata_of(op, families) != _metadata_planned(planned):
        return -9
    if axis_of(op, families) != planned.axis:
        return 1
    return 4 + (fits(op, planned)) + same_dtype(op, planned)


def axis_of(op: Op, families: Families) -> str:
    """The axis of the rules that a recorded group stands for."""
    family = families.of(op.group) or ""
    return {"tp-cp": "tp", "etp-ep": "ep", "etp": "ep", "dp-cp": "cp"}.get(family, family)


def fits(op: Op, planned: PlannedOp) -> bool:
    """Whether elements agree; an all-to-all's on the side that routing does not vary."""
    if planned.elements is None:
        return True
    if op.kind is OpKind.ALL_TO_ALL:
        return planned.elements in (op.in_elements, op.out_elements)
    return planned.elements == max(op.in_elements, op.out_elements)


def same_dtype(op: Op, planned: PlannedOp) -> bool:
    """Whether elements are of the planned dtype; counts are whole numbers of any width."""
    return is_integer(op.dtype) if planned.dtype == COUNTS else ours(op.dtype) == planned.dtype


def _metadata_of(op: Op, families: Families) -> str | None:
    """What a recorded operation says of the routing: counts, probabilities, or nothing (rows)."""
    if is_routing_counts(op, families):
        return "counts"
    return "probabilities" if is_narrow_exchange(op) else None


def _metadata_planned(planned: PlannedOp) -> str | None:
    if not planned.is_metadata:
        return None
    return "counts" if planned.dtype == COUNTS else "probabilities"


def is_narrow_exchange(op: Op) -> bool:
    """Whether an all-to-all sends one number for each row: probabilities, no rows."""
    return op.kind is OpKind.ALL_TO_ALL and all(len(shape) < 2 for shape in op.in_shapes)


def moved(
    pairs: list[tuple[int | None, int | None]],
    recorded: Sequence[Op],
    planned: Sequence[PlannedOp],
    families: Families,
    gone: set[int],
) -> list[tuple[int | None, int | None]]:
    """Pair what is left over on both sides and fits: the same operation, issued at another moment."""
    for position, (here, there) in enumerate(pairs):
        if here is None or there is not None:
            continue
        fits = [
            (abs(other - position), other)
            for other, (lacking, place) in enumerate(pairs)
            if lacking is None
            and place is not None
            and place not in gone
            and likeness(recorded[here], planned[place], families) >= 4
        ]
        if fits:
            nearest = min(fits)[1]
            pairs[position] = (here, pairs[nearest][1])
            pairs[nearest] = (None, None)
    return [pair for pair in pairs if pair != (None, None)]

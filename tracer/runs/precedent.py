"""Which of two parties that wait in different collectives does what the job does elsewhere.

Layers repeat, and groups of one kind run the same program. So the operation that came next the other times,
after the same operations before it, is the one to expect; the party that waits in it is not the odd one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tracer.runs.reading.recording import Group, Op, OpKind, RankRecord

Call = tuple[object, ...]
"""What members of a collective must agree in: kind, sizes where they may not differ, dtype."""

MAX_GROUPS = 64
MAX_HISTORY = 48
MIN_HISTORY = 2
MIN_KINDS = 8
"""How often a kind must be recorded elsewhere before one that is recorded nowhere is odd."""
MIN_PROGRAM = 4
MAX_LOOKED_BACK = 64
MAX_PROGRAMS = 16


def call_of(op: Op) -> Call:
    """What the members of a collective must agree in.

    An all-to-all, a gather or a scatter may differ in rows, not in what a row is.
    """
    if op.kind in (OpKind.ALL_TO_ALL, OpKind.GATHER, OpKind.SCATTER):
        return op.kind, tuple(shape[1:] for shape in op.in_shapes), op.dtype
    if op.kind is OpKind.OTHER:
        return (op.kind,)
    return op.kind, op.in_elements, op.dtype


class Precedent:
    """The calls of one kind of group, by group and sequence number, in ranks whose operations are known."""

    def __init__(self, group: Group, number: int, records: Iterable[RankRecord]) -> None:
        self.group, self.number = group, number
        self._calls: dict[Group, dict[int, Call]] = {}
        self._traits: set[tuple[str, object]] = set()
        self._kinds: Counter[OpKind] = Counter()
        for record in records:
            for op in record.ops:
                if op.group != group or op.sequence != number:
                    self._traits.update(trait for each in _traits(op) for trait in each)
                if op.sequence is None or not _alike(op.group, group):
                    continue
                self._kinds[op.kind] += op.group != group or op.sequence != number
                if op.group not in self._calls and len(self._calls) >= MAX_GROUPS and op.group != group:
                    continue
                self._calls.setdefault(op.group, {}).setdefault(op.sequence, call_of(op))

    def odd(self, parties: Sequence[Op]) -> list[int]:
        """Places of the parties that do what is not done elsewhere; all where that cannot be told."""
        expected = self._next()
        if expected is not None:
            right = [place for place, op in enumerate(parties) if call_of(op) == expected]
            if len(right) == 1:
                return [place for place in range(len(parties)) if place not in right]
        seen = [self._kinds[op.kind] for op in parties]
        if max(seen) >= MIN_KINDS and 0 in seen:
            return [place for place, count in enumerate(seen) if not count]
        for traits in zip(*map(_traits, parties), strict=True):
            strange = [place for place, each in enumerate(traits) if each and not each & self._traits]
            if 0 < len(strange) < len(parties):
                return strange
        return list(range(len(parties)))

    def _next(self) -> Call | None:
        """What came next where the same operations came before, most of them; None without a precedent."""
        own = self._calls.get(self.group, {})
        before = [own[n] for n in range(self.number - 1, self.number - 1 - MAX_HISTORY, -1) if n in own]
        best, votes = MIN_HISTORY - 1, Counter[Call]()
        for group, calls in self._calls.items():
            for number, call in calls.items():
                if group == self.group and number >= self.number:
                    continue
                length = 0
                while length < len(before) and calls.get(number - 1 - length) == before[length]:
                    length += 1
                if length > best:
                    best, votes = length, Counter()
                if length == best and length >= MIN_HISTORY:
                    votes[call] += 1
        ranked = votes.most_common(2)
        if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
            return None
        return ranked[0][0]


def _traits(op: Op) -> tuple[set[tuple[str, object]], ...]:
    """Dtype, widths of rows and elements of an operation: what a wrong tensor has as no other."""
    widths = {shape[-1] for shape in (*op.in_shapes, *op.out_shapes) if len(shape) > 1}
    return (
        {("dtype", op.dtype)},
        {("width", width) for width in widths},
        {("elements", op.in_elements), ("elements", op.out_elements)},
    )


def _alike(one: Group, other: Group) -> bool:
    """Whether two groups do the same work: the same description, or the same spacing where there is none."""
    if one.description or other.description:
        return one.description == other.description and one.size == other.size
    return one.size == other.size and (
        [b - a for a, b in zip(one.members, one.members[1:], strict=False)]
        == [b - a for a, b in zip(other.members, other.members[1:], strict=False)]
    )


def strays(ranks: Sequence[RankRecord], others: Sequence[RankRecord]) -> list[int]:
    """Ranks whose last operations follow on one another as nowhere else: one was left out, or out of order.

    Each of a rank's last operations is held against what came next in other ranks' programs, and earlier in
    its own, after the longest run of the same operations before it; it is a stray where all of these agree
    on another one.
    """
    programs = {record.rank: _program(record) for record in [*ranks, *others]}
    return [record.rank for record in ranks if _strays(record.rank, programs)]


def _program(record: RankRecord) -> list[Call]:
    """A rank's operations as words that ranks in the same place of other groups share."""
    return [
        (
            op.kind,
            op.group.description or op.group.size,
            *(call_of(op)[1:] if op.sequence is not None else ()),
        )
        for op in record.ops
    ]


def _strays(rank: int, programs: Mapping[int, list[Call]]) -> bool:
    mine = programs[rank]
    first = max(MIN_PROGRAM, len(mine) - MAX_LOOKED_BACK)
    compared = [rank, *[other for other in programs if other != rank][:MAX_PROGRAMS]]
    for place in range(first, len(mine)):
        best, expected = MIN_PROGRAM - 1, set[Call]()
        for other in compared:
            theirs = programs[other]
            for there in range(MIN_PROGRAM, place if other == rank else len(theirs)):
                length = _shared(mine, place, theirs, there)
                if length > best:
                    best, expected = length, set()
                if length == best and length >= MIN_PROGRAM:
                    expected.add(theirs[there])
        if expected and mine[place] not in expected:
            return True
    return False


def _shared(mine: list[Call], place: int, theirs: list[Call], there: int) -> int:
    """How many operations before two places are the same, at most ``MAX_HISTORY``."""
    length, most = 0, min(place, there, MAX_HISTORY)
    while length < most and mine[place - 1 - length] == theirs[there - 1 - length]:
        length += 1
    return length

"""Where a rank stands: the operation that it waits in, and whether what it issued later is held up by it.

A rank's operations run in the order of issue. One that everybody has issued still does not end while a
member waits in an earlier one: that member is blocked, and is no cause.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracer.runs.reading.recording import Group, Op, OpKind, RankRecord


@dataclass(frozen=True, slots=True)
class Frontier:
    """Pending operations of a rank in order of issue, and the one that it waits in.

    ``head`` is the first that is no send (sends run beside what follows them) and that nothing issued later
    has overtaken; where all are overtaken, the first. ``is_overtaken`` says that: the rank went on beside it,
    as it does beside a gradient's sum. None where nothing is pending.
    """

    pending: tuple[Op, ...]
    head: Op | None
    is_overtaken: bool

    @classmethod
    def of(cls, record: RankRecord) -> Frontier:
        """The frontier of a rank, from its operations."""
        pending = tuple(op for op in record.pending() if op.kind is not OpKind.OTHER)
        if not pending:
            return cls((), None, False)
        open_ones = {op.index for op in pending}
        # Indices count every operation: one that is missing here, or recorded as done, has ended.
        last = max(
            [op.index for op in record.ops if op.index not in open_ones]
            + [
                op.index - 1
                for op in pending
                if op.index - 1 not in open_ones and op.index > pending[0].index
            ],
            default=-1,
        )
        waits = [op for op in pending if op.kind is not OpKind.SEND] or list(pending)
        ahead = [op for op in waits if op.index > last or op.peer is not None]
        return cls(pending, (ahead or waits)[0], not ahead)

    @property
    def is_free(self) -> bool:
        """Whether the rank waits in nothing that holds up its work, as far as can be seen."""
        return self.is_overtaken or all(op.kind is OpKind.SEND for op in self.pending)

    def blocks(self, op: Op) -> bool:
        """Whether the rank waits in an operation that it issued before this one."""
        return self.head is not None and not self.is_overtaken and self.head.index < op.index

    def issued(self, group: Group, sequence: int) -> Op | None:
        """The pending collective of a group under a number."""
        return next((op for op in self.pending if op.group == group and op.sequence == sequence), None)

    def facing(self, op: Op, rank: int) -> Op | None:
        """The pending half of a pair that answers a send or receive of ``rank``."""
        want = OpKind.SEND if op.kind is OpKind.RECV else OpKind.RECV
        return next(
            (
                each
                for each in self.pending
                if each.kind is want and each.peer == rank and each.group == op.group
            ),
            None,
        )

"""What the shapes of recorded operations tell of the model and of how it runs.

Hidden size and rows come from tensors that pass between stages or are gathered over TP; experts from the
counts that routers exchange; top-k from the rows of an all-to-all that never vary. All of it is a reading
of sizes, not a statement of the run, and is marked as guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from tracer.runs.families import family_of
from tracer.runs.reading.dtypes import is_fp8, is_integer, ours
from tracer.runs.reading.recording import Group, Op, OpKind, Shape

_CP_KINDS = {
    OpKind.SEND: "ring",
    OpKind.RECV: "ring",
    OpKind.ALL_TO_ALL: "ulysses",
    OpKind.ALL_GATHER: "all_gather",
}
ROWS_KINDS = (OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER, OpKind.ALL_REDUCE)


@dataclass(frozen=True, slots=True)
class Shapes:
    """Sizes read from shapes; None (or False) where no operation tells.

    ``rows`` are rows of hidden size on one rank outside attention; ``gather_dtype`` is the dtype of rows
    gathered over TP in the forward pass, ``row_dtype`` that of rows elsewhere. ``shared_overlap`` says that a
    shared expert's own gather and sum lie around the dispatch, not before the router; ``routing_metadata``
    that counts are exchanged before rows; ``kv_exchange`` is what CP ranks exchange, in a scenario's word.
    """

    hidden: int | None = None
    rows: int | None = None
    experts: int | None = None
    top_k: int | None = None
    sequence_parallel: bool | None = None
    row_dtype: str | None = None
    fp8_gather: bool = False
    dispatch_dtype: str | None = None
    shared_expert: bool = False
    shared_overlap: bool = False
    routing_metadata: bool = False
    vocab_parallel: bool = False
    gathers_tokens: bool = False
    kv_exchange: str | None = None


class Families(dict[Group, str]):
    """Families by group, with a lookup that knows descriptions."""

    def of(self, group: Group) -> str | None:
        """The family of a group, recorded or guessed."""
        return self.get(group) or family_of(group.description)


def read_shapes(ranks: Iterable[Sequence[Op]], families: Families) -> Shapes:
    """Sizes from the operations of some ranks."""
    lists = [list(ops) for ops in ranks]
    ops = [op for each in lists for op in each]
    hidden = _hidden(ops, families)
    if hidden is None:
        return Shapes(kv_exchange=_kv_exchange(ops, families))
    rows = _rows(ops, families, hidden)
    exchanges = [op for op in ops if _is_rows(op, hidden) and op.kind is OpKind.ALL_TO_ALL]
    tp_rows = [op for op in ops if _is_rows(op, hidden) and families.of(op.group) in ("tp", "tp-cp")]
    gathers = [op for op in ops if _is_rows(op, hidden) and families.of(op.group) in ("ep", "etp-ep", "dp")]
    kinds = {op.kind for op in tp_rows}
    overlap = any(_has_overlapped_shared(each, families, hidden) for each in lists)
    split = bool(kinds & {OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER})
    dtypes = Counter(
        word for op in ops if _is_rows(op, hidden) and (word := ours(op.dtype)) not in (None, "fp8")
    )
    return Shapes(
        kv_exchange=_kv_exchange(ops, families),
        hidden=hidden,
        rows=rows,
        experts=_experts(ops, families),
        top_k=_top_k(exchanges, rows, hidden),
        sequence_parallel=None if not tp_rows else split,
        row_dtype=dtypes.most_common(1)[0][0] if dtypes else None,
        fp8_gather=any(op.kind is OpKind.ALL_GATHER and is_fp8(op.dtype) for op in tp_rows),
        dispatch_dtype=_most(ours(op.dtype) for op in exchanges),
        shared_expert=overlap or any(_has_shared_before(each, families, hidden) for each in lists),
        shared_overlap=overlap,
        routing_metadata=bool(exchanges) and any(is_routing_counts(op, families) for op in ops),
        vocab_parallel=any(_has_vocab_sum(each, families, hidden) for each in lists),
        gathers_tokens=not exchanges and any(op.kind is OpKind.ALL_GATHER and not is_integer(op.dtype)
                                             for op in gathers if families.of(op.group) != "dp"),
    )  # fmt: skip


def rows_of(shape: Shape, hidden: int) -> int | None:
    """Rows of hidden size in a tensor, or None where its last dimension is another."""
    return prod(shape[:-1]) if len(shape) > 1 and shape[-1] == hidden else None


def _is_rows(op: Op, hidden: int) -> bool:
    shapes = (*op.in_shapes, *op.out_shapes)
    return bool(shapes) and all(len(shape) > 1 and shape[-1] == hidden for shape in shapes)


def _most(words: Iterable[str | int | None]) -> str | None:
    found = Counter(word for word in words if word is not None)
    return str(found.most_common(1)[0][0]) if found else None


def _hidden(ops: list[Op], families: Families) -> int | None:
    """The last dimension that most tensors between stages, over TP and between experts share."""
    votes: Counter[int] = Counter()
    for op in ops:
        if op.kind in (*ROWS_KINDS, OpKind.ALL_TO_ALL, OpKind.SEND, OpKind.RECV) and (
            (op.kind.is_p2p and families.of(op.group) != "cp")
            or families.of(op.group) in ("tp", "ep", "etp-ep", "tp-cp")
        ):
            for shape in op.in_shapes[:1]:
                if len(shape) > 1 and shape[-1] >= 16 and not is_integer(op.dtype):
                    votes[shape[-1]] += 1
    return votes.most_common(1)[0][0] if votes else None


def _rows(ops: list[Op], families: Families, hidden: int) -> int | None:
    """Rows of one rank: of tensors between stages, else what a rank gives to a gather over TP."""
    between = [
        op.in_shapes[0] for op in ops if op.kind.is_p2p and op.in_shapes and families.of(op.group) != "cp"
    ]
    given = [
        op.in_shapes[0] if op.kind is not OpKind.REDUCE_SCATTER else op.out_shapes[0]
        for op in ops
        if op.kind in ROWS_KINDS and families.of(op.group) == "tp" and op.in_shapes and op.out_shapes
    ]
    for shapes in (between, given):
        votes = Counter(rows for shape in shapes if (rows := rows_of(shape, hidden)))
        if votes:
            return votes.most_common(1)[0][0]
    return None


def _kv_exchange(ops: list[Op], families: Families) -> str | None:
    """What runs among CP ranks: sends around a ring, heads all to all, or K/V gathered."""
    found = Counter(
        word
        for op in ops
        if families.of(op.group) == "cp"
        and (word := _CP_KINDS.get(op.kind))
        and all(len(shape) > 1 for shape in op.in_shapes)
    )
    return found.most_common(1)[0][0] if found else None


def _experts(ops: list[Op], families: Families) -> int | None:
    """The length of the counts that each rank's router gives to an exchange of whole numbers."""
    votes = Counter(
        op.in_shapes[0][0]
        for op in ops
        if is_integer(op.dtype) and op.kind in (OpKind.ALL_REDUCE, OpKind.ALL_GATHER)
        and len(op.in_shapes) == 1 and len(op.in_shapes[0]) == 1 and 2 <= op.in_shapes[0][0] <= 4096
        and families.of(op.group) in ("tp-cp", "ep", "etp-ep", "tp-dp-cp", "etp")
    )  # fmt: skip
    return votes.most_common(1)[0][0] if votes else None


def _top_k(exchanges: list[Op], rows: int | None, hidden: int) -> int | None:
    """Copies of a row that leave a rank: the side of an all-to-all that does not vary, over its rows."""
    if rows is None:
        return None
    sides: Counter[int] = Counter()
    for op in exchanges:
        for shape in (op.in_shapes[0], op.out_shapes[0]):
            found = rows_of(shape, hidden)
            if found and found % rows == 0:
                sides[found // rows] += 1
    best = sides.most_common(1)
    return best[0][0] if best and best[0][1] >= len(exchanges) / 2 else None


def is_routing_counts(op: Op, families: Families) -> bool:
    """Whether an operation exchanges how many rows go where: whole numbers, in one dimension."""
    return (
        is_integer(op.dtype)
        and op.kind in (OpKind.ALL_REDUCE, OpKind.ALL_GATHER, OpKind.ALL_TO_ALL)
        and all(len(shape) == 1 for shape in op.in_shapes)
        and families.of(op.group) in ("tp", "tp-cp", "ep", "etp", "etp-ep", "tp-dp-cp")
    )


def _has_overlapped_shared(ops: list[Op], families: Families, hidden: int) -> bool:
    """Rows gathered over TP between the exchange of counts and the dispatch: a shared expert's own gather."""
    after_counts = False
    for op in ops:
        if is_routing_counts(op, families):
            after_counts = True
        elif op.kind is OpKind.ALL_TO_ALL or op.kind.is_p2p:
            after_counts = False
        elif (
            after_counts
            and op.kind is OpKind.ALL_GATHER
            and families.of(op.group) == "tp"
            and _is_rows(op, hidden)
        ):
            return True
    return False


def _has_shared_before(ops: list[Op], families: Families, hidden: int) -> bool:
    """An even number of gathers and sums over TP between two blocks of experts.

    Attention takes one pair, a dense layer between takes two; a shared expert makes the number even.
    """
    exchanges, pairs, is_open = 0, -1, False
    for op in ops:
        if is_routing_counts(op, families):
            if pairs > 0 and pairs % 2 == 0 and not is_open:
                return True
            exchanges, pairs = 0, -1
        elif op.kind is OpKind.ALL_TO_ALL:
            exchanges += _is_rows(op, hidden)
            pairs, is_open = (0 if exchanges == 2 else -1), False
        elif families.of(op.group) != "cp":
            gather = _is_rows(op, hidden) and families.of(op.group) == "tp" and op.kind
            if gather is OpKind.ALL_GATHER and not is_open:
                is_open = True
            elif gather is OpKind.REDUCE_SCATTER and is_open:
                pairs, is_open = pairs + (pairs >= 0), False
            else:
                pairs, exchanges, is_open = -1, 3, False
    return False


def _has_vocab_sum(ops: list[Op], families: Families, hidden: int) -> bool:
    """A sum over TP right after the batch came in: an embedding sliced over the vocabulary."""
    return any(
        before.kind is OpKind.BROADCAST
        and families.of(before.group) == "tp"
        and op.kind in (OpKind.REDUCE_SCATTER, OpKind.ALL_REDUCE)
        and families.of(op.group) == "tp"
        and _is_rows(op, hidden)
        for before, op in pairwise(ops)
    )

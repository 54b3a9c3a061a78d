"""What each recorded operation serves: a layer of the forward pass, backward, the optimizer, the loss.

Operations of one rank come in the order of issue. A forward MoE block is found by the exchange of counts
that opens it; a backward one sends the same rows without. Between sends and receives the rest follows the
direction of the send that ends it: to the next stage forward, to the one before backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tracer.runs.families import WEIGHTS, WORLD
from tracer.runs.reading.dtypes import is_integer
from tracer.runs.reading.recording import Op, OpKind
from tracer.runs.shapes import ROWS_KINDS, Families, Shapes, is_routing_counts, rows_of


class Phase(StrEnum):
    """The part of a step that an operation belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    LOSS = "loss"
    INPUT = "input"
    SCALING = "fp8_scaling"
    PIPELINE = "pipeline"
    WEIGHTS = "weights"
    UNKNOWN = "unknown"


WORDS = {
    Phase.BACKWARD: "backward: gradients take the forward way in reverse; a trip follows the forward pass",
    Phase.OPTIMIZER: "optimizer or bookkeeping: gradients, parameters, norms and losses over replicas",
    Phase.LOSS: "loss: largest logit, target's logit and sum of exponentials over a sliced vocabulary",
    Phase.INPUT: "input: a batch's tokens and masks from the first rank of the TP group",
    Phase.SCALING: "FP8 scaling: the largest values of each matmul's tensors, for the next scale factors",
    Phase.PIPELINE: "pipeline: rows forward or gradients backward between stages",
    Phase.WEIGHTS: "sharded weights: parameters are gathered before a layer, gradients scattered after it",
    Phase.UNKNOWN: "not told apart: forward or backward",
    Phase.FORWARD: "forward, outside a whole layer: an embedding's sum, or rows gathered for the LM head",
}


@dataclass(frozen=True, slots=True)
class ForwardLayer:
    """Operations of one layer's forward pass on one rank.

    ``starts_cut`` and ``ends_cut`` say that the recording begins or ends inside the layer.
    """

    rank: int
    ops: tuple[Op, ...]
    starts_cut: bool
    ends_cut: bool


@dataclass(frozen=True, slots=True)
class Classified:
    """A rank's operations with their phases, and the layers of the forward pass among them."""

    phases: tuple[Phase, ...]
    layers: tuple[ForwardLayer, ...]


def classify(rank: int, ops: Sequence[Op], families: Families, shapes: Shapes) -> Classified:
    """Phases of one rank's operations, in their order."""
    hidden = shapes.hidden
    phases = [_fixed(op, families, hidden) for op in ops]
    layers: list[ForwardLayer] = []
    start = 0
    while start < len(ops):
        if phases[start] is not None:
            start += 1
            continue
        end = start
        while end < len(ops) and phases[end] is None:
            end += 1
        found = _segment(ops, families, shapes, range(start, end))
        for span in found:
            for place in span:
                phases[place] = Phase.FORWARD
            layers.append(
                ForwardLayer(
                    rank, tuple(ops[place] for place in span), _opens_cut(ops, span, families),
                    span[-1] == len(ops) - 1 and not _is_whole(ops, span, families),
                )
            )  # fmt: skip
        _rest(ops, phases, families, range(start, end), bool(found))
        start = end
    if not layers:
        _settle_inference(phases)
        layers = _dense_layers(rank, ops, phases, families, hidden)
    return Classified(tuple(phase or Phase.UNKNOWN for phase in phases), tuple(layers))


def _settle_inference(phases: list[Phase | None]) -> None:
    """Where nothing is backward and nothing is optimized, what could be either is forward."""
    if not {Phase.BACKWARD, Phase.OPTIMIZER, Phase.WEIGHTS, Phase.LOSS} & set(phases):
        phases[:] = [Phase.FORWARD if phase is Phase.UNKNOWN else phase for phase in phases]


def _dense_layers(
    rank: int, ops: Sequence[Op], phases: list[Phase | None], families: Families, hidden: int | None
) -> list[ForwardLayer]:
    """Layers without experts: attention and feed-forward, each a gather and a sum, or a sum alone."""
    units: tuple[tuple[OpKind, ...], ...] = (
        (OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER) * 2,
        (OpKind.ALL_REDUCE,) * 2,
    )
    rows = [
        place
        for place, op in enumerate(ops)
        if phases[place] is Phase.FORWARD
        and hidden is not None
        and _tp_rows(op, families, hidden, *ROWS_KINDS)
    ]
    within = {place for place, op in enumerate(ops) if families.of(op.group) == "cp"}
    layers: list[ForwardLayer] = []
    here = 0
    while here < len(rows):
        for unit in units:
            span = rows[here : here + len(unit)]
            if tuple(ops[place].kind for place in span) == unit:
                span = _with_exchanges(span, within)
                layers.append(ForwardLayer(rank, tuple(ops[place] for place in span), False, False))
                here += len(unit) - 1
                break
        here += 1
    return layers


def _with_exchanges(span: list[int], within: set[int]) -> list[int]:
    """A layer's places with what CP ranks exchange in its attention: before its first sum, or inside."""
    first = span[0]
    while first - 1 in within:
        first -= 1
    return sorted({*span, *(place for place in range(first, span[-1]) if place in within)})


def _fixed(op: Op, families: Families, hidden: int | None) -> Phase | None:
    """The phase that an operation's group and shape tell on their own, or None inside a block."""
    family = families.of(op.group)
    if op.kind.is_p2p:
        return None if family == "cp" else Phase.PIPELINE
    if family == WEIGHTS:
        return Phase.WEIGHTS
    if family in ("dp", "dp-cp", "edp", "embd", "pos_embd", "tp-pp", "etp-ep-pp", "optimizer", WORLD) or (
        family is not None and family.startswith(("intra_", "inter_"))
    ):
        return Phase.OPTIMIZER
    if op.kind is OpKind.BROADCAST:
        return Phase.INPUT
    shapes = (*op.in_shapes, *op.out_shapes)
    flat = all(len(shape) < 2 for shape in shapes)
    if family == "tp-dp-cp" and op.kind is OpKind.ALL_REDUCE and flat and not is_integer(op.dtype):
        return Phase.SCALING
    if family == "cp" and flat and op.kind is not OpKind.ALL_TO_ALL:
        return Phase.OPTIMIZER
    if hidden is None or op.kind in (OpKind.OTHER, OpKind.BARRIER):
        return Phase.UNKNOWN
    if op.kind is OpKind.ALL_REDUCE and not is_routing_counts(op, families):
        narrow = all(len(shape) < 2 or shape[-1] != hidden for shape in shapes)
        if family in ("tp", "tp-cp") and narrow:
            return Phase.LOSS if any(len(shape) > 1 for shape in shapes) else Phase.OPTIMIZER
    return None


def _segment(ops: Sequence[Op], families: Families, shapes: Shapes, places: range) -> list[list[int]]:
    """Spans of forward layers with experts inside a stretch without a boundary."""
    hidden = shapes.hidden
    pairs = 2 if shapes.shared_expert and not shapes.shared_overlap else 1
    spans: list[list[int]] = []
    place = places.start
    while place < places.stop:
        opens_inside = place == 0 and _forward_exchange(ops, families, hidden, range(place, places.stop))
        if not is_routing_counts(ops[place], families) and not opens_inside:
            place += 1
            continue
        span = (
            []
            if opens_inside
            else _before_block(
                ops, families, hidden, range(spans[-1][-1] + 1 if spans else places.start, place), pairs
            )
        )
        after = _block_end(ops, families, hidden, range(place, places.stop))
        spans.append([*span, *range(place, after)])
        place = after
    return spans


def _before_block(
    ops: Sequence[Op], families: Families, hidden: int | None, places: range, pairs: int
) -> list[int]:
    """Places right before a block: ``pairs`` of gather and sum over TP, or sums alone, and CP's exchanges."""
    begin = places.stop
    for _ in range(pairs):
        begin = _pair_before(ops, families, hidden, range(places.start, begin))
    return list(range(begin, places.stop))


def _pair_before(ops: Sequence[Op], families: Families, hidden: int | None, places: range) -> int:
    """Where a gather and a sum over TP begin that end a stretch."""
    taken, begin = places.start, places.stop
    while begin > taken and families.of(ops[begin - 1].group) == "cp":
        begin -= 1
    if begin > taken and _tp_rows(ops[begin - 1], families, hidden, OpKind.REDUCE_SCATTER, OpKind.ALL_REDUCE):
        begin -= 1
        while begin > taken and families.of(ops[begin - 1].group) == "cp":
            begin -= 1
        if (
            ops[begin].kind is not OpKind.ALL_REDUCE
            and begin > taken
            and _tp_rows(ops[begin - 1], families, hidden, OpKind.ALL_GATHER)
        ):
            begin -= 1
    return begin


def _tp_rows(op: Op, families: Families, hidden: int | None, *kinds: OpKind) -> bool:
    return op.kind in kinds and families.of(op.group) in ("tp", "tp-cp") and not is_integer(op.dtype) and (
        hidden is None or any(rows_of(shape, hidden) for shape in op.in_shapes)
    )  # fmt: skip


def _block_end(ops: Sequence[Op], families: Families, hidden: int | None, places: range) -> int:
    """The place after a MoE block that begins at ``places.start``: counts, dispatch, combine, a last sum."""
    exchanges, gathers = 0, 0
    place = places.start
    while place < places.stop:
        op = ops[place]
        family = families.of(op.group)
        if family == "cp" and not exchanges:
            break
        if op.kind is OpKind.ALL_TO_ALL and family != "cp" and not is_routing_counts(op, families):
            rows = any(len(shape) > 1 for shape in op.in_shapes)
            if rows and exchanges == 2:
                break
            exchanges += rows
        elif is_routing_counts(op, families):
            if exchanges:
                break
        elif family == "etp" and op.kind in ROWS_KINDS and exchanges < 2:
            pass  # an expert's rows gathered and summed over those that slice it
        elif family in ("ep", "etp-ep") and op.kind in ROWS_KINDS and exchanges < 2:
            exchanges += 1
        elif _tp_rows(op, families, hidden, OpKind.ALL_GATHER) and exchanges < 2:
            gathers += 1
        elif _tp_rows(op, families, hidden, OpKind.REDUCE_SCATTER, OpKind.ALL_REDUCE) and (
            gathers or places.start == 0 or op.kind is OpKind.ALL_REDUCE
        ):
            gathers = max(0, gathers - 1)
            if exchanges >= 2:
                place += 1
                break
        else:
            break
        place += 1
    return max(place, places.start + 1)


def _forward_exchange(ops: Sequence[Op], families: Families, hidden: int | None, places: range) -> bool:
    """Whether a recording opens in a forward block: probabilities go out with rows, before these return."""
    run = [ops[place] for place in places if ops[place].kind is OpKind.ALL_TO_ALL][:3]
    if len(run) < 2 or ops[places.start].kind is not OpKind.ALL_TO_ALL or hidden is None:
        return False
    narrow = [all(len(shape) < 2 for shape in op.in_shapes) for op in run]
    return (
        len(run) == 3
        and narrow == [False, True, False]
        and run[1].out_elements * hidden == run[0].out_elements
    )


def _opens_cut(ops: Sequence[Op], span: list[int], families: Families) -> bool:
    return span[0] == 0 and not (ops[0].kind is OpKind.ALL_GATHER and families.of(ops[0].group) == "tp")


def _is_whole(ops: Sequence[Op], span: list[int], families: Families) -> bool:
    """Whether a layer at a recording's end has its combine, and a sum for each gather."""
    kinds = [ops[place].kind for place in span if families.of(ops[place].group) == "tp"]
    rows = [
        ops[p] for p in span if ops[p].kind is OpKind.ALL_TO_ALL and any(len(s) > 1 for s in ops[p].in_shapes)
    ]
    return len(rows) >= 2 and kinds.count(OpKind.ALL_GATHER) <= kinds.count(OpKind.REDUCE_SCATTER)


def _rest(
    ops: Sequence[Op], phases: list[Phase | None], families: Families, places: range, has_forward: bool
) -> None:
    """Phases of what no forward layer with experts took, by exchange, by the send that follows, by kinds."""
    left = [place for place in places if phases[place] is None]
    if not left:
        return
    if any(ops[place].kind is OpKind.ALL_TO_ALL and families.of(ops[place].group) != "cp" for place in left):
        phase = Phase.BACKWARD
    elif (left[-1] + 1 < len(ops) and phases[left[-1] + 1] is Phase.LOSS) or (
        has_forward and places.start and phases[places.start - 1] is Phase.INPUT
    ):
        phase = Phase.FORWARD
    else:
        phase = _direction(ops, families, places) or _by_kinds([ops[place] for place in left])
    if phase is Phase.UNKNOWN and _by_sums(ops, phases, families, left):
        return
    for place in left:
        phases[place] = phase


def _by_sums(ops: Sequence[Op], phases: list[Phase | None], families: Families, places: list[int]) -> bool:
    """Phases of a stretch without a boundary, sum by sum; False where rows are summed without gathers.

    Before each sum over TP, the forward pass gathers rows once, backward twice: a gradient, and the input
    again. What CP ranks exchange belongs to the sum that follows.
    """
    if not any(ops[place].kind is OpKind.ALL_GATHER for place in places):
        return False
    unit: list[int] = []
    gathers = 0
    for place in places:
        unit.append(place)
        if families.of(ops[place].group) not in ("tp", "tp-cp"):
            continue
        gathers += ops[place].kind is OpKind.ALL_GATHER
        if ops[place].kind is OpKind.REDUCE_SCATTER:
            phase = {1: Phase.FORWARD, 2: Phase.BACKWARD}.get(gathers, Phase.UNKNOWN)
            for each in unit:
                phases[each] = phase
            unit, gathers = [], 0
    for each in unit:
        phases[each] = Phase.UNKNOWN
    return True


def _direction(ops: Sequence[Op], families: Families, places: range) -> Phase | None:
    """Forward or backward by the first send after a stretch, where its pipeline group is known."""
    for op in ops[places.stop : places.stop + 6]:
        if (
            op.kind is OpKind.SEND
            and op.peer is not None
            and families.of(op.group) == "pp"
            and op.group.size > 2
        ):
            members = op.group.members
            return _step(op, members)
        if not op.kind.is_p2p and op.kind in ROWS_KINDS and families.of(op.group) == "tp":
            return None
    return None


def _step(op: Op, members: tuple[int, ...]) -> Phase | None:
    """Forward for a send of stage i to i + 1, by the name that PyTorch gives it (``send 2->3``)."""
    words = op.name.rsplit(" ", 1)[-1].split("->")
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    here, there = map(int, words)
    if (here + 1) % len(members) == there:
        return Phase.FORWARD
    return Phase.BACKWARD if (there + 1) % len(members) == here else None


def _by_kinds(ops: list[Op]) -> Phase:
    """Backward gathers twice for each sum (gradient, and input again); forward as often as it sums."""
    gathers = sum(op.kind is OpKind.ALL_GATHER for op in ops)
    sums = sum(op.kind is OpKind.REDUCE_SCATTER for op in ops)
    if sums and gathers >= 2 * sums:
        return Phase.BACKWARD
    return Phase.FORWARD if sums and gathers == sums else Phase.UNKNOWN

"""The recorded operations of a layer beside those of a trip: same, missing, extra, or with other sizes.

The two rows are aligned as sequences (Needleman and Wunsch, J. Mol. Biol. 48, 1970): an operation that one
side lacks shifts nothing. What is left over on both sides and agrees in kind and group is the same
operation in another place. Each row says which rule or flag explains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tracer.mesh.axes import Axis
from tracer.runs.phases import WORDS, Classified, ForwardLayer, Phase
from tracer.runs.reading.dtypes import is_fp8, ours
from tracer.runs.reading.recording import Op, OpKind
from tracer.runs.shapes import Families, is_routing_counts
from tracer.trip.hop import Hop, HopKind, Part
from tracer.trip.trip import iterate_hops

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

MAX_HOPS = 4096
_WIDTH = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}


class Status(StrEnum):
    """How a recorded operation and a predicted one compare."""

    SAME = "same"
    MISSING = "missing"
    EXTRA = "extra"
    BYTES = "bytes"
    DTYPE = "dtype"
    GROUP = "group"
    OUTSIDE = "outside"


DIFFERENT = (Status.MISSING, Status.EXTRA, Status.BYTES, Status.DTYPE, Status.GROUP)


@dataclass(frozen=True, slots=True)
class PlannedOp:
    """An operation that a trip's hop stands for, on one rank.

    ``elements`` are the larger side's, None where they depend on the routing or on other ranks.
    """

    kind: OpKind
    axis: str
    part: Part
    hop: str
    dtype: str
    elements: int | None

    @property
    def bytes(self) -> int | None:
        """Bytes of the larger side."""
        return None if self.elements is None else self.elements * _WIDTH[self.dtype]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of the comparison. ``explained`` rows differ by what trips leave out on purpose."""

    status: Status
    phase: Phase
    recorded: Op | None
    planned: PlannedOp | None
    why: str
    fix: str | None = None
    explained: bool = False
    rank: int | None = None
    count: int = 1

    @property
    def differs(self) -> bool:
        """Whether this is a difference that the run and the scenario must settle."""
        return self.status in DIFFERENT and not self.explained

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        op, planned = self.recorded, self.planned
        return {
            "status": str(self.status),
            "phase": str(self.phase),
            "kind": str(op.kind if op is not None else planned.kind if planned is not None else ""),
            "recorded": None if op is None else {
                "name": op.name, "group": op.group.description or op.group.name,
                "members": list(op.group.members), "sequence": op.sequence,
                "in_shapes": [list(shape) for shape in op.in_shapes],
                "out_shapes": [list(shape) for shape in op.out_shapes],
                "dtype": op.dtype, "bytes": op.bytes,
            },
            "predicted": None if planned is None else {
                "hop": planned.hop, "axis": planned.axis, "part": str(planned.part), "dtype": planned.dtype,
                "bytes": planned.bytes,
            },
            "why": self.why,
            "fix": self.fix,
            "explained": self.explained,
            "rank": self.rank,
            "count": self.count,
        }  # fmt: skip


def planned_layer(scenario: Scenario) -> list[PlannedOp]:
    """Operations of the scenario's first layer with experts, or of its first layer where none has any.

    Raises:
        ConfigError: when the scenario lacks what a trip needs.
    """
    model = scenario.model
    layer = next((n for n in range(1, model.layers + 1) if model.is_moe(n)), 1)
    found: list[PlannedOp] = []
    for count, hop in enumerate(iterate_hops(scenario)):
        if hop.layer == layer and hop.part is not Part.PIPELINE and hop.part is not Part.HEAD:
            found += _planned(scenario, hop)
        if hop.layer > layer or count > MAX_HOPS:
            break
    return found


def _planned(scenario: Scenario, hop: Hop) -> list[PlannedOp]:
    """The collective behind a hop; its elements follow from the rows of one rank."""
    axis = hop.axis or ""
    hidden = scenario.model.hidden or 0
    tp = scenario.mesh.tp
    split = scenario.plan.sp != "off"
    rows = scenario.decode_landing.rows_per_rank if scenario.decodes else scenario.landing.tokens_per_rank
    whole = rows * tp * hidden
    kinds = {
        HopKind.ALL_GATHER: (OpKind.ALL_GATHER, whole),
        HopKind.REDUCE_SCATTER: (OpKind.REDUCE_SCATTER, whole),
        HopKind.ALL_REDUCE: (OpKind.ALL_REDUCE, whole),
        HopKind.KV_EXCHANGE: (
            OpKind.ALL_GATHER if scenario.plan.kv_exchange == "all_gather" else OpKind.SEND, None,
        ),
    }  # fmt: skip
    gathers = scenario.plan.contract == "ag_rs"
    sent = (rows if split else rows * tp) * hidden
    group = scenario.mesh.dispatch_size
    copies = (scenario.model.top_k or 1) + len(scenario.always_picked)
    exchange = sent * group if gathers else sent * copies
    kinds[HopKind.DISPATCH] = (OpKind.ALL_GATHER if gathers else OpKind.ALL_TO_ALL, exchange)
    kinds[HopKind.COMBINE] = (OpKind.REDUCE_SCATTER if gathers else OpKind.ALL_TO_ALL, exchange)
    if hop.kind not in kinds:
        return []
    kind, elements = kinds[hop.kind]
    dtypes = scenario.dtype
    dtype = {
        HopKind.DISPATCH: dtypes.dispatch,
        HopKind.COMBINE: dtypes.combine,
        HopKind.KV_EXCHANGE: dtypes.kv,
        HopKind.ALL_GATHER: dtypes.gathered if scenario.plan.sp == "megatron" else dtypes.activations,
    }
    return [PlannedOp(kind, axis, hop.part, str(hop.kind), dtype.get(hop.kind, dtypes.activations), elements)]


def compare_layers(
    layers: Sequence[ForwardLayer], planned: Sequence[PlannedOp], families: Families
) -> list[DiffRow]:
    """The fullest recorded layer against the plan; what the recording cuts off is taken from other layers."""
    rows: list[DiffRow] = []
    open_places: set[int] | None = None
    for layer in sorted(layers, key=lambda each: (-len(each.ops), each.rank))[:64]:
        found, cut = _aligned(layer, planned, families)
        if open_places is None:
            rows, open_places = [row for _, row in found], cut
        elif _fills(found, open_places):
            seen = {_signature(row) for row in rows}
            rows += [row for place, row in found if place in open_places or (
                place is None and _signature(row) not in seen
            )]  # fmt: skip
            open_places -= {place for place, _ in found if place is not None}
        if not open_places:
            break
    return rows


def _fills(found: list[tuple[int | None, DiffRow]], open_places: set[int]) -> bool:
    """Whether a layer shows, not lacks, a planned operation that is still open."""
    return any(place in open_places and row.recorded is not None for place, row in found)


def _signature(row: DiffRow) -> tuple[object, ...]:
    op = row.recorded
    return (
        (row.status, row.why)
        if op is None
        else (row.status, op.kind, op.group.description, op.dtype, row.why)
    )


def _aligned(
    layer: ForwardLayer, planned: Sequence[PlannedOp], families: Families
) -> tuple[list[tuple[int | None, DiffRow]], set[int]]:
    """Rows of one layer with the place of their planned operation, and places that the recording cuts off."""
    pairs = align(layer.ops, planned, families)
    first, last = _matched(pairs)
    # A recording that opens behind the attention cannot hold its operations at another place.
    gone = {n for n, op in enumerate(planned) if op.part is Part.ATTENTION and _is_cut(layer, n, first, last)}
    pairs = _moved(pairs, layer.ops, planned, families, gone)
    first, last = _matched(pairs)
    rows: list[tuple[int | None, DiffRow]] = []
    cut: set[int] = set()
    for recorded, place in pairs:
        if place is not None and recorded is None and _is_cut(layer, place, first, last):
            cut.add(place)
            continue
        op = None if recorded is None else layer.ops[recorded]
        plan = None if place is None else planned[place]
        rows.append((place, _row(op, plan, families, layer.rank)))
    return rows, cut


def _matched(pairs: Iterable[tuple[int | None, int | None]]) -> tuple[int, int]:
    """The first and the last planned place that a recorded operation stands for."""
    places = [place for recorded, place in pairs if recorded is not None and place is not None]
    return (min(places), max(places)) if places else (0, -1)


def _is_cut(layer: ForwardLayer, place: int, first: int, last: int) -> bool:
    """Whether a planned operation would lie outside the recorded part of a layer."""
    return (layer.starts_cut and place < first) or (layer.ends_cut and place > last)


def align(
    recorded: Sequence[Op], planned: Sequence[PlannedOp], families: Families
) -> list[tuple[int | None, int | None]]:
    """Pairs of places, in order, with the greatest total of :func:`_likeness` less 1 for each gap."""
    gap = -1
    height, width = len(recorded) + 1, len(planned) + 1
    table = [[0] * width for _ in range(height)]
    for i in range(height):
        for j in range(width):
            if i and j:
                match = table[i - 1][j - 1] + _likeness(recorded[i - 1], planned[j - 1], families)
                table[i][j] = max(match, table[i - 1][j] + gap, table[i][j - 1] + gap)
            else:
                table[i][j] = gap * (i + j)
    pairs: list[tuple[int | None, int | None]] = []
    i, j = height - 1, width - 1
    while i or j:
        if (
            i
            and j
            and table[i][j] == table[i - 1][j - 1] + _likeness(recorded[i - 1], planned[j - 1], families)
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


def _likeness(op: Op, planned: PlannedOp, families: Families) -> int:
    """How well two operations fit: 6 alike, 4 in other bytes or dtype, 2 on another group, below −2 never."""
    if op.kind is not planned.kind or is_routing_counts(op, families) or _is_narrow_exchange(op):
        return -9
    if axis_of(op, families) != planned.axis:
        return 1
    return 4 + (_fits(op, planned)) + (ours(op.dtype) == planned.dtype)


def axis_of(op: Op, families: Families) -> str:
    """The axis of the rules that a recorded group stands for."""
    family = families.of(op.group) or ""
    return {"tp-cp": "tp", "etp-ep": "ep", "etp": "ep", "dp-cp": "cp"}.get(family, family)


def _fits(op: Op, planned: PlannedOp) -> bool:
    """Whether elements agree; an all-to-all's on the side that routing does not vary."""
    if planned.elements is None:
        return True
    if op.kind is OpKind.ALL_TO_ALL:
        return planned.elements in (op.in_elements, op.out_elements)
    return planned.elements == max(op.in_elements, op.out_elements)


def _is_narrow_exchange(op: Op) -> bool:
    return op.kind is OpKind.ALL_TO_ALL and all(len(shape) < 2 for shape in op.in_shapes)


def _moved(
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
            and _likeness(recorded[here], planned[place], families) >= 4
        ]
        if fits:
            nearest = min(fits)[1]
            pairs[position] = (here, pairs[nearest][1])
            pairs[nearest] = (None, None)
    return [pair for pair in pairs if pair != (None, None)]


def _row(op: Op | None, planned: PlannedOp | None, families: Families, rank: int) -> DiffRow:
    """One line, with the rule or flag that explains it."""
    if op is None:
        assert planned is not None
        why, fix = _why_missing(planned)
        return DiffRow(Status.MISSING, Phase.FORWARD, None, planned, why, fix, rank=rank)
    if planned is None:
        why, fix, explained = _why_extra(op, families)
        return DiffRow(Status.EXTRA, Phase.FORWARD, op, None, why, fix, explained, rank)
    part = planned.part.replace("_", " ")
    if axis_of(op, families) != planned.axis:
        why = f"the {part} runs it on {op.group}, the trip on {planned.axis}"
        return DiffRow(Status.GROUP, Phase.FORWARD, op, planned, why, "compare the groups first", rank=rank)
    if not _fits(op, planned):
        most = max(op.in_elements, op.out_elements)
        why = f"{most:,} elements, and the trip's prompt gives {planned.elements:,}"
        fix = "set token.prompt to the run's micro-batch, and model.hidden and model.top_k to the run's"
        return DiffRow(Status.BYTES, Phase.FORWARD, op, planned, why, fix, rank=rank)
    if ours(op.dtype) != planned.dtype:
        return _other_dtype(op, planned, part, rank)
    how = " sliced over TP (shared_tp = own)" if planned.part is Part.SHARED else ""
    return DiffRow(Status.SAME, Phase.FORWARD, op, planned, f"{planned.hop} of the {part}{how}", rank=rank)


def _other_dtype(op: Op, planned: PlannedOp, part: str, rank: int) -> DiffRow:
    if is_fp8(op.dtype) and planned.hop in (HopKind.ALL_GATHER, HopKind.REDUCE_SCATTER):
        why = (
            f"{planned.hop} of the {part} in one byte an element: rows are cast to FP8 before they are "
            "gathered (Transformer Engine), half the bytes of the trip, which gathers activations as they are"
        )
        fix = "set dtype.tp_gather = fp8" if planned.hop == HopKind.ALL_GATHER else None
        return DiffRow(Status.DTYPE, Phase.FORWARD, op, planned, why, fix, True, rank)
    table = {HopKind.DISPATCH: "dispatch", HopKind.COMBINE: "combine", HopKind.KV_EXCHANGE: "kv"}
    key = table.get(HopKind(planned.hop), "activations")
    fix = f"set dtype.{key} = {ours(op.dtype)}" if ours(op.dtype) else None
    why = f"{planned.hop} of the {part} carries {op.dtype}, the trip {planned.dtype}"
    return DiffRow(Status.DTYPE, Phase.FORWARD, op, planned, why, fix, rank=rank)


def _why_missing(planned: PlannedOp) -> tuple[str, str | None]:
    part = planned.part.replace("_", " ")
    if planned.part is Part.SHARED:
        return "the trip slices the shared expert over tp; this run does not", "set mesh.shared_tp = whole"
    if planned.part is Part.MOE:
        return (
            f"the trip has a {planned.hop} of experts; this run moves their rows otherwise",
            "set mesh.contract to what the run does (ag_rs gathers all rows, tp sums partial ones)",
        )
    if planned.axis == Axis.TP:
        return (
            f"the trip has a {planned.hop} of the {part} on tp; this run does not",
            "set mesh.sp or mesh.dense_tp",
        )
    return f"the trip has a {planned.hop} of the {part}; this run does not", None


def _why_extra(op: Op, families: Families) -> tuple[str, str | None, bool]:
    """Why, what to set, and whether trips leave it out on purpose."""
    if is_routing_counts(op, families):
        return (
            "routing metadata: how many rows each expert gets; trips do not count ids and counts",
            None,
            True,
        )
    if _is_narrow_exchange(op):
        return (
            "routing metadata: the gates' probabilities travel beside their rows; trips do not count them",
            None,
            True,
        )
    axis = axis_of(op, families)
    if axis == Axis.TP and op.kind in (OpKind.ALL_GATHER, OpKind.REDUCE_SCATTER):
        return (
            "an all-gather and a reduce-scatter on tp in a MoE layer: a shared expert sliced over TP",
            "set model.shared_experts = 1 and mesh.shared_tp = own",
            False,
        )
    if axis == Axis.TP and op.kind is OpKind.ALL_REDUCE:
        return (
            "a sum on tp that the trip lacks: partial sums of a shared or dense part",
            "set mesh.shared_tp or mesh.dense_tp",
            False,
        )
    if axis == Axis.EP:
        return "rows move between expert ranks in a way that the trip lacks", "set mesh.contract", False
    return f"the trip has no {op.kind} on {op.group}", None, False


def outside_rows(classified: Iterable[tuple[int, Sequence[Op], Classified]]) -> list[DiffRow]:
    """What is no layer of the forward pass, counted by phase, kind, group and dtype, and named."""
    counts: Counter[tuple[Phase, OpKind, str, str]] = Counter()
    example: dict[tuple[Phase, OpKind, str, str], tuple[int, Op]] = {}
    for rank, ops, found in classified:
        inside = {id(op) for layer in found.layers for op in layer.ops}
        for op, phase in zip(ops, found.phases, strict=True):
            if id(op) in inside:
                continue
            key = (phase, op.kind, op.group.description or str(op.group.size), op.dtype)
            counts[key] += 1
            example.setdefault(key, (rank, op))
    return [
        DiffRow(
            Status.OUTSIDE, key[0], example[key][1], None, WORDS[key[0]], None, True, example[key][0], count
        )
        for key, count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1]))
    ]

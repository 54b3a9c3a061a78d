"""The recorded operations of a layer beside those of a trip: same, missing, extra, or with other sizes.

The two rows are aligned as sequences (``alignment``); each line says which rule or flag explains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tracer.runs.alignment import align, axis_of, fits, moved, same_dtype
from tracer.runs.phases import WORDS, Classified, ForwardLayer, Phase
from tracer.runs.planned import PlannedOp
from tracer.runs.reading.dtypes import is_fp8, ours
from tracer.runs.reading.recording import Op, OpKind
from tracer.runs.reasons import why_extra, why_missing
from tracer.runs.shapes import Families
from tracer.trip.hop import ONCE_A_LAYER, HopKind, Part


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
    layer = _ring_as_one(layer, families)
    pairs = align(layer.ops, planned, families)
    first, last = _matched(pairs)
    # A recording that opens behind the attention cannot hold its operations at another place.
    gone = {n for n, op in enumerate(planned) if op.part is Part.ATTENTION and _is_cut(layer, n, first, last)}
    pairs = moved(pairs, layer.ops, planned, families, gone)
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


def _ring_as_one(layer: ForwardLayer, families: Families) -> ForwardLayer:
    """A layer in which the sends and receives around a CP ring are one operation, as a trip counts them."""
    kept: list[Op] = []
    for op in layer.ops:
        in_ring = op.kind.is_p2p and families.of(op.group) == "cp"
        if in_ring and kept and kept[-1].kind.is_p2p and kept[-1].group == op.group:
            if op.kind is OpKind.SEND and kept[-1].kind is OpKind.RECV:
                kept[-1] = op
            continue
        kept.append(op)
    return replace(layer, ops=tuple(kept))


def _matched(pairs: Iterable[tuple[int | None, int | None]]) -> tuple[int, int]:
    """The first and the last planned place that a recorded operation stands for."""
    places = [place for recorded, place in pairs if recorded is not None and place is not None]
    return (min(places), max(places)) if places else (0, -1)


def _is_cut(layer: ForwardLayer, place: int, first: int, last: int) -> bool:
    """Whether a planned operation would lie outside the recorded part of a layer."""
    return (layer.starts_cut and place < first) or (layer.ends_cut and place > last)


def _row(op: Op | None, planned: PlannedOp | None, families: Families, rank: int) -> DiffRow:
    """One line, with the rule or flag that explains it."""
    if op is None:
        assert planned is not None
        why, fix = why_missing(planned)
        return DiffRow(Status.MISSING, Phase.FORWARD, None, planned, why, fix, planned.is_metadata, rank)
    if planned is None:
        why, fix, explained = why_extra(op, families)
        return DiffRow(Status.EXTRA, Phase.FORWARD, op, None, why, fix, explained, rank)
    part = planned.part.replace("_", " ")
    if axis_of(op, families) != planned.axis:
        why = f"the {part} runs it on {op.group}, the trip on {planned.axis}"
        return DiffRow(Status.GROUP, Phase.FORWARD, op, planned, why, "compare the groups first", rank=rank)
    if not fits(op, planned):
        most = max(op.in_elements, op.out_elements)
        why = f"{most:,} elements, and the trip's prompt gives {planned.elements:,}"
        fix = "set token.prompt to the run's micro-batch, and model.hidden and model.top_k to the run's"
        if planned.hop in ONCE_A_LAYER:
            why = f"counts of {most:,} experts, and the trip's model and groups give {planned.elements:,}"
            fix = "set model.experts, and mesh.ep and mesh.etp, to the run's"
        return DiffRow(Status.BYTES, Phase.FORWARD, op, planned, why, fix, rank=rank)
    if not same_dtype(op, planned):
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
    if planned.is_metadata:
        why = f"{planned.hop} of the {part} carries {op.dtype}: the router's own dtype, which no key tells"
        return DiffRow(Status.DTYPE, Phase.FORWARD, op, planned, why, None, True, rank)
    if planned.hop == HopKind.ALL_GATHER and planned.dtype == "fp8":
        why = (
            f"{planned.hop} of the {part} carries {op.dtype}: dtype.tp_gather is for all of a layer, "
            "and this run casts only some to FP8"
        )
        return DiffRow(Status.DTYPE, Phase.FORWARD, op, planned, why, None, True, rank)
    table = {HopKind.DISPATCH: "dispatch", HopKind.COMBINE: "combine", HopKind.KV_EXCHANGE: "kv"}
    key = table.get(HopKind(planned.hop), "activations")
    fix = f"set dtype.{key} = {ours(op.dtype)}" if ours(op.dtype) else None
    why = f"{planned.hop} of the {part} carries {op.dtype}, the trip {planned.dtype}"
    return DiffRow(Status.DTYPE, Phase.FORWARD, op, planned, why, fix, rank=rank)


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

"""What was sent: every row that moved between two GPUs, with the token it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tracer.model.dtype import BYTES, Dtype, dispatch_row_bytes
from tracer.scenario.plan import Contract, DispatchMode, Sp
from tracer.trip.hop import ONCE_A_LAYER, HopKind, Part
from tracer.trip.hops.heads import head_slice
from tracer.trip.hops.routing import COUNT_BYTES

if TYPE_CHECKING:
    from tracer.proof.replay.layer.maths import IntArray
    from tracer.scenario.scenario import Scenario


class Place(NamedTuple):
    """Which hop of a trip something belongs to."""

    layer: int
    part: Part
    kind: HopKind


@dataclass(frozen=True, slots=True)
class Sent:
    """Rows sent side by side: row i of token ``ids[i]`` went from ``src[i]`` to ``dst[i]``.

    The three arrays are ``[rows]`` int64; each row holds ``elements``, counted from the array that
    moved. ``step`` orders the sends of one hop: a relay forwards after it has received.
    """

    place: Place
    role: str
    step: int
    src: IntArray
    dst: IntArray
    ids: IntArray
    elements: int


@dataclass(frozen=True, slots=True)
class Pulled:
    """What one rank got from another once for a layer, for all its tokens: weights, or routing's counts."""

    place: Place
    role: str
    src: int
    dst: int
    ids: tuple[int, ...]
    elements: int


Move = tuple[int, int, int, str]
"""(source, destination, bytes, role)."""
Moves = dict[Place, list[Move]]


@dataclass(slots=True)
class Ledger:
    """All sends of a replay, in the order they were made."""

    scenario: Scenario
    sent: list[Sent] = field(default_factory=list)
    pulled: list[Pulled] = field(default_factory=list)

    def bytes_of(self, entry: Sent | Pulled) -> int:
        """Bytes of one row (or one pull) on the wire, in the scenario's dtypes."""
        return wire_bytes(self.scenario, entry.place.kind, entry.elements)

    def bytes_moved(self, *, real: bool | None = None) -> int:
        """Bytes of all rows, or of prompt tokens alone, or of padding and dummies alone."""
        total = 0
        for entry in self.sent:
            rows = len(entry.ids) if real is None else int(((entry.ids >= 0) == real).sum())
            total += rows * self.bytes_of(entry)
        return total

    def moves_by_token(self) -> dict[int, Moves]:
        """What carried each token, hop by hop in any order, pulled weights included."""
        found: dict[int, Moves] = {}
        for token, place, move in self._each():
            found.setdefault(token, {}).setdefault(place, []).append(move)
        return found

    def _each(self) -> Iterator[tuple[int, Place, Move]]:
        for entry in self.sent:
            size = self.bytes_of(entry)
            columns = zip(entry.src.tolist(), entry.dst.tolist(), entry.ids.tolist(), strict=True)
            for src, dst, token in columns:
                yield token, entry.place, (src, dst, size, entry.role)
        for pull in self.pulled:
            move = (pull.src, pull.dst, self.bytes_of(pull), pull.role)
            for token in pull.ids:
                yield token, pull.place, move


def wire_bytes(scenario: Scenario, kind: HopKind, elements: int) -> int:
    """Bytes that ``elements`` array elements of one row take on the wire, by what the hop carries."""
    dtype = scenario.dtype
    if kind is HopKind.DISPATCH:
        low_latency = (
            scenario.plan.contract is Contract.EP and scenario.plan.dispatch is DispatchMode.LOW_LATENCY
        )
        return dispatch_row_bytes(elements, dtype.dispatch, low_latency=low_latency)
    if kind in ONCE_A_LAYER:
        return elements * COUNT_BYTES
    if kind is HopKind.PARTIALS_RETURN:
        return _partial_bytes(scenario, elements)
    if kind is HopKind.HEADS_SCATTER:
        query = head_slice(scenario, 1).query
        return query * BYTES[dtype.activations] + (elements - query) * BYTES[dtype.kv]
    if kind is HopKind.ALL_GATHER and scenario.plan.sp is Sp.MEGATRON:
        return elements * BYTES[dtype.gathered]
    declared = {
        HopKind.COMBINE: dtype.combine,
        HopKind.KV_EXCHANGE: dtype.kv,
        HopKind.KV_TRANSFER: dtype.kv,
        HopKind.LOGITS_GATHER: dtype.logits,
        HopKind.WEIGHT_PULL: dtype.weights,
        HopKind.WEIGHT_GATHER: dtype.weights,
    }
    return elements * BYTES[declared.get(kind, dtype.activations)]


def _partial_bytes(scenario: Scenario, elements: int) -> int:
    """A partial attention: for each head an output in the activations' dtype, and m and ℓ in FP32."""
    model = scenario.model
    width = model.need("kv_lora_rank" if model.mla else "v_head_dim", "size a partial output")
    heads = elements // (width + 2)
    return heads * (width * BYTES[scenario.dtype.activations] + 2 * BYTES[Dtype.FP32])

"""Two trips beside each other: totals, each axis, and hop by hop."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from tracer.hop import HopKind
from tracer.trip import LOG_AXES, TIERS

if TYPE_CHECKING:
    from tracer.hop import Hop
    from tracer.trip import Trip


@dataclass(frozen=True, slots=True)
class AxisTotals:
    """What one axis did in a trip: comm ops, crossings, and bytes by tier."""

    axis: str
    comm_ops: int
    crossings: int
    nvlink_bytes: int
    ib_bytes: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two trips; ``axes`` pairs their totals, ``hops`` their hops (None where one has no counterpart)."""

    a: Trip
    b: Trip
    axes: tuple[tuple[AxisTotals, AxisTotals], ...]
    hops: tuple[tuple[Hop | None, Hop | None], ...]

    @property
    def first_difference(self) -> int | None:
        """Place in ``hops`` of the first pair that differs in what moves, or None."""
        for place, (one, other) in enumerate(self.hops):
            if one is None or other is None or one.transfers != other.transfers:
                return place
        return None


def compare_trips(a: Trip, b: Trip) -> Comparison:
    """Pair two trips: hops of one layer, part and kind face each other."""
    axes = tuple((axis_totals(a, axis), axis_totals(b, axis)) for axis in LOG_AXES)
    return Comparison(a, b, axes, tuple(_pairs(a.hops, b.hops)))


def axis_totals(trip: Trip, axis: str) -> AxisTotals:
    """Totals of one axis; pulled weights are tallied apart and left out."""
    hops = [hop for hop in trip.filter(axis=axis) if hop.kind is not HopKind.WEIGHT_PULL]
    moved = dict.fromkeys(TIERS, 0)
    for hop in hops:
        for transfer in hop.transfers:
            moved[transfer.tier] += transfer.bytes
    crossings = sum(hop.crossings for hop in hops)
    return AxisTotals(axis, sum(hop.is_comm_op for hop in hops), crossings, moved["nvlink"], moved["ib"])


def _pairs(a: tuple[Hop, ...], b: tuple[Hop, ...]) -> list[tuple[Hop | None, Hop | None]]:
    matcher = SequenceMatcher(None, [_key(hop) for hop in a], [_key(hop) for hop in b], autojunk=False)
    found: list[tuple[Hop | None, Hop | None]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            found += zip(a[i1:i2], b[j1:j2], strict=True)
        else:
            found += [(hop, None) for hop in a[i1:i2]] + [(None, hop) for hop in b[j1:j2]]
    return found


def _key(hop: Hop) -> tuple[int, str, str]:
    return hop.layer, str(hop.part), str(hop.kind)

"""Moves that several hops share: who holds the row, who its partners are, how a collective walks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES
from tracer.scenario.plan import Sp, TpAlgo
from tracer.trip.hop import Hop, HopKind, Part, Role, Transfer, Where

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def make_hop(
    kind: HopKind, where: Where, transfers: Iterable[Transfer], *, held: tuple[int, ...] = (), note: str = ""
) -> Hop:
    """A hop of a kind at a place; the axis follows from the kind."""
    return Hop(
        kind,
        kind.axis,
        where.layer,
        where.stage,
        where.part,
        where.dead,
        tuple(transfers),
        held,
        note,
    )


def send(scenario: Scenario, source: int, destination: int, size: int, role: Role) -> Transfer:
    """One transfer; its tier follows from where the two ranks sit."""
    return Transfer(source, destination, size, scenario.cluster.tier(source, destination), role)


def row_elements(scenario: Scenario, part: Part | None = None) -> int:
    """Elements of the token's row: ``hidden``; in a MoE block what its experts take (LatentMoE: less)."""
    model = scenario.model
    return model.expert_row if part is Part.MOE else model.need("hidden", "size a row")


def row_bytes(scenario: Scenario, part: Part | None = None) -> int:
    """Bytes of the token's row as activations."""
    return row_elements(scenario, part) * BYTES[scenario.dtype.activations]


def gathered_row_bytes(scenario: Scenario, part: Part | None = None) -> int:
    """Bytes of the row as an all-gather over TP carries it.

    With SP it feeds a split matmul, in ``dtype.tp_gather``; after a dispatch that was split before, it hands
    the experts' output on, as activations.
    """
    if scenario.plan.sp is not Sp.MEGATRON:
        return row_bytes(scenario)
    return row_elements(scenario, part) * BYTES[scenario.dtype.gathered]


def tp_ranks(scenario: Scenario, home: int) -> list[int]:
    """The TP group of a rank, by tp coordinate."""
    grid = scenario.mesh.dense
    stride = grid.stride_of(Axis.TP)
    first = home - grid.coordinate(home, Axis.TP) * stride
    return list(range(first, first + grid.size_of(Axis.TP) * stride, stride))


def tp_ring(scenario: Scenario, home: int) -> list[int]:
    """The TP group of a rank in ring order, starting at the rank itself."""
    ranks = tp_ranks(scenario, home)
    start = ranks.index(home)
    return ranks[start:] + ranks[:start]


def row_holders(scenario: Scenario, home: int) -> list[int]:
    """Ranks that hold the whole row outside attention: the home, or without SP its whole TP group."""
    return [home] if scenario.plan.sp is Sp.MEGATRON else tp_ranks(scenario, home)


def moe_sources(scenario: Scenario, home: int) -> list[int]:
    """Ranks that run the token's MoE block: the home, or every TP rank when SP is off."""
    return tp_ranks(scenario, home) if scenario.plan.sp is Sp.OFF else [home]


def spread(scenario: Scenario, home: int, size: int, role: Role) -> list[Transfer]:
    """From home to every TP peer: straight to each, or along the ring."""
    ring = tp_ring(scenario, home)
    if scenario.plan.tp_algo is TpAlgo.RING:
        return [send(scenario, a, b, size, role) for a, b in pairwise(ring)]
    return [send(scenario, home, peer, size, role) for peer in sorted(ring[1:])]


def gather_sum(scenario: Scenario, home: int, size: int, role: Role) -> list[Transfer]:
    """From every TP peer to home: straight from each, or one running sum along the ring."""
    ring = tp_ring(scenario, home)
    if scenario.plan.tp_algo is TpAlgo.RING:
        walk = [*ring[1:], home]
        return [send(scenario, a, b, size, role) for a, b in pairwise(walk)]
    return [send(scenario, peer, home, size, role) for peer in sorted(ring[1:])]

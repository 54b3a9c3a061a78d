"""What moves in a census's layers beside the experts' traffic: heads over cp, gathers of sharded weights.

Both follow from the homes alone: a row's hops over cp are those of its home's trip, and every rank gathers
its units once a layer, whatever its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.memory.shard_units import UnitKind, shard_unit
from tracer.mesh.cluster import Tier
from tracer.scenario.plan import Sp
from tracer.scenario.sharding import shard_sizes
from tracer.trip.hop import HopKind, Part
from tracer.trip.itinerary import Rider, itinerary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracer.batch.census.result import Census, CensusPart
    from tracer.scenario.scenario import Scenario

CP_KINDS = (HopKind.HEADS_SCATTER, HopKind.KV_EXCHANGE, HopKind.HEADS_GATHER)


@dataclass(frozen=True, slots=True)
class BesideTraffic:
    """Bytes of one kind of hop in the layers counted, over all ranks, by tier."""

    kind: HopKind
    nvlink_bytes: int
    ib_bytes: int


def beside_traffic(census: Census) -> tuple[BesideTraffic, ...]:
    """Hops over cp of a prefill's rows where heads move, then gathers of sharded weights."""
    scenario = census.scenario
    found: dict[HopKind, dict[Tier, int]] = {}

    def add(kind: HopKind, tier: Tier, size: int) -> None:
        """Add bytes of a kind."""
        by_tier = found.setdefault(kind, dict.fromkeys(Tier, 0))
        by_tier[tier] += size

    if scenario.plan.head_parts(scenario.mesh.cp) > 1 and not scenario.decodes:
        for part in census.parts:
            for kind, tier, size in _over_cp(scenario, part):
                add(kind, tier, size)
    if not shard_sizes(scenario.plan, scenario.mesh).whole:
        for tier, size in _gathers(scenario, census.parts):
            add(HopKind.WEIGHT_GATHER, tier, size)
    return tuple(
        BesideTraffic(kind, by_tier[Tier.NVLINK], by_tier[Tier.IB]) for kind, by_tier in found.items()
    )


def _over_cp(scenario: Scenario, part: CensusPart) -> Iterable[tuple[HopKind, Tier, int]]:
    """(kind, tier, bytes) of the hops over cp of every home's rows."""
    rows, layers = part.traffic.rows.tolist(), set(part.layers)
    none = dict.fromkeys(range(1, scenario.model.layers + 1), ())
    for source, home in enumerate(scenario.mesh.stage_lists()[0].tolist()):
        # Without SP every TP rank counts its own copy of a row, and a hop has those of all.
        if not rows[source] or (scenario.plan.sp is Sp.OFF and scenario.mesh.dense.coordinate(home, "tp")):
            continue
        # Rows are those of all layers together, and each layer has as many.
        for build, where in itinerary(scenario, Rider(0, home, False, none)):
            if where.part is Part.ATTENTION and where.layer in layers and build.__name__ in CP_KINDS:
                hop = build(scenario, where)
                for transfer in hop.transfers:
                    yield hop.kind, transfer.tier, transfer.bytes * rows[source] // len(layers)


def _gathers(scenario: Scenario, parts: Iterable[CensusPart]) -> Iterable[tuple[Tier, int]]:
    """(tier, bytes) of the gathers of every rank that runs a layer: its own weights, and its experts."""
    cluster = scenario.cluster
    for part in parts:
        for rank in scenario.mesh.stage_lists()[part.stage].tolist():
            for layer in part.layers:
                for kind in (UnitKind.LAYER, UnitKind.EXPERTS):
                    unit = shard_unit(scenario, rank, kind, layer)
                    for peer in unit.group:
                        if peer != rank:
                            yield cluster.tier(peer, rank), unit.piece_bytes

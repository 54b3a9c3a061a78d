"""Sharded weights (FSDP, HSDP, ZeRO-3): before a unit runs, the others' pieces come to who runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.scenario.plan import Contract
from tracer.trip.hop import Hop, HopKind, Part, Role, Transfer, Where
from tracer.trip.hops.moves import make_hop, moe_sources, send, tp_ranks
from tracer.trip.hops.routes import expert_messages

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def weight_gather(scenario: Scenario, where: Where) -> Hop:
    """Every rank that runs the token's unit gets the pieces that it does not keep, straight from who does.

    The TP group runs the token's layers and ends; of routed experts the ranks of those picked. It moves no
    token: it touches no GPU, adds no crossing, and its bytes are tallied apart.
    """
    # Few deployments shard their weights, and loading what sizes them takes longer than a short trip.
    from tracer.memory.shard_units import UnitKind, shard_unit

    kind = {
        Part.EMBEDDING: UnitKind.EMBEDDING,
        Part.ATTENTION: UnitKind.LAYER,
        Part.MOE: UnitKind.EXPERTS,
        Part.HEAD: UnitKind.HEAD,
    }[where.part]
    transfers: list[Transfer] = []
    for rank in unit_ranks(scenario, where):
        unit = shard_unit(scenario, rank, kind, where.layer)
        transfers += [
            send(scenario, peer, rank, unit.piece_bytes, Role.WEIGHTS) for peer in unit.group if peer != rank
        ]
    return make_hop(HopKind.WEIGHT_GATHER, where, transfers)


def unit_ranks(scenario: Scenario, where: Where) -> list[int]:
    """Ranks that run a token's unit: its TP group, or the GPUs of the experts that it picked, ascending."""
    if where.part is not Part.MOE or scenario.plan.contract is Contract.TP:
        return tp_ranks(scenario, where.home)
    sources = moe_sources(scenario, where.home)
    return sorted({rank for source in sources for _, rank in expert_messages(scenario, where, source)})

"""What routing itself exchanges: counts of rows per expert, and the gates' probabilities.

No row of the token is in these exchanges of Megatron's all-to-all dispatcher: they are counted only where
``routing_metadata`` asks for them. Counts are whole numbers of 8 bytes, one per expert; a probability has the
activations' dtype and goes beside each copy of a row. Source: ``core/transformer/moe/router.py`` and
``token_dispatcher.py`` of Megatron-Core 0.16.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.model.dtype import BYTES
from tracer.trip.hop import Hop, HopKind, Role, Transfer, Where
from tracer.trip.hops.moves import make_hop, moe_sources, send
from tracer.trip.hops.routes import dispatch_peers, expert_messages

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

COUNT_BYTES = 8


def _counts(scenario: Scenario) -> int:
    """Bytes of one rank's counts, one for each routed expert."""
    return scenario.model.need("experts", "count rows per expert") * COUNT_BYTES


def counts_reduce(scenario: Scenario, where: Where) -> Hop:
    """Counts summed over tp × cp, for the balancing loss: to the home rank, and the sums back from it."""
    peers = [rank for rank in scenario.mesh.group(where.home, ("tp", "cp")) if rank != where.home]
    size = _counts(scenario)
    there = [send(scenario, peer, where.home, size, Role.METADATA) for peer in peers]
    back = [send(scenario, where.home, peer, size, Role.METADATA) for peer in peers]
    return make_hop(HopKind.COUNTS_REDUCE, where, there + back)


def counts_gather(scenario: Scenario, where: Where) -> Hop:
    """Counts of each rank that dispatches the token reach its dispatch group (etp × ep)."""
    size = _counts(scenario)
    transfers = [
        send(scenario, source, peer, size, Role.METADATA)
        for source in moe_sources(scenario, where.home)
        for peer in dispatch_peers(scenario, source)
    ]
    return make_hop(HopKind.COUNTS_GATHER, where, transfers)


def probs_dispatch(scenario: Scenario, where: Where) -> Hop:
    """One probability beside each copy of the row that goes to an expert."""
    sources = moe_sources(scenario, where.home)
    transfers = [each for source in sources for each in probs_from(scenario, where, source)]
    return make_hop(HopKind.PROBS_DISPATCH, where, transfers)


def probs_from(scenario: Scenario, where: Where, source: int) -> list[Transfer]:
    """The probabilities that one dispatching rank sends, in the order of the picks."""
    size = BYTES[scenario.dtype.activations]
    messages = expert_messages(scenario, where, source)
    return [send(scenario, source, rank, size, Role.METADATA) for _, rank in messages if rank != source]

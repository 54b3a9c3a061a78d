"""Combine: weighted expert outputs travel back and are summed on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.dtype import BYTES
from tracer.hop import Hop, HopKind, Role, Transfer, Where
from tracer.hops.moves import make_hop, moe_sources, send
from tracer.hops.routes import dispatch_peers, expert_messages, routes
from tracer.plan import Contract

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def combine(scenario: Scenario, where: Where) -> Hop:
    """The paths of dispatch, walked back: each GPU's own sum to the relay, one IB copy of theirs home.

    Mirrors dispatch in copies, not in bytes: rows come back in the combine dtype.
    """
    transfers: list[Transfer] = []
    for source in moe_sources(scenario, where.home):
        transfers += combine_to(scenario, where, source)
    return make_hop(HopKind.COMBINE, where, transfers)


def combine_to(scenario: Scenario, where: Where, source: int) -> list[Transfer]:
    """Transfers that bring one source rank's copy its results."""
    size = scenario.need_model().need("hidden", "size a row") * BYTES[scenario.dtype.combine]
    if scenario.plan.contract != Contract.EP:
        return [send(scenario, peer, source, size, Role.PARTIAL) for peer in dispatch_peers(scenario, source)]
    if scenario.plan.dispatch == "low_latency":
        messages = expert_messages(scenario, where, source)
        return [send(scenario, rank, source, size, Role.RESULT) for _, rank in messages if rank != source]
    transfers: list[Transfer] = []
    for route in routes(scenario, where, source):
        end = source if route.relay is None else route.relay
        transfers += [send(scenario, gpu, end, size, Role.RESULT) for gpu in route.gpus if gpu != end]
        if route.relay is not None:
            transfers.append(send(scenario, route.relay, source, size, Role.SUM))
    return transfers

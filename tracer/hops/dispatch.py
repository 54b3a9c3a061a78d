"""Dispatch: the row travels to the GPUs of its experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.dtype import dispatch_row_bytes
from tracer.hop import Hop, HopKind, Role, Transfer, Where
from tracer.hops.moves import make_hop, moe_sources, send
from tracer.hops.routes import dispatch_peers, expert_messages, routes
from tracer.plan import Contract

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def dispatch(scenario: Scenario, where: Where) -> Hop:
    """Copies of the row to the experts' GPUs.

    High throughput: one copy a GPU inside the home island; one IB copy to each remote island's relay,
    which forwards one a GPU (DeepSeek-V3 report 3.2.2; DeepEP's normal kernels). Low latency: one
    message straight for each (expert, etp rank). ``ag_rs``: straight to the whole dispatch group.
    """
    notes: dict[str, None] = {}
    transfers: list[Transfer] = []
    for source in moe_sources(scenario, where.home):
        transfers += dispatch_from(scenario, where, source, notes)
    return make_hop(HopKind.DISPATCH, where, transfers, note="; ".join(notes))


def dispatch_from(
    scenario: Scenario, where: Where, source: int, notes: dict[str, None] | None = None
) -> list[Transfer]:
    """Transfers of the copy that one source rank dispatches; fallbacks are told to ``notes``."""
    low_latency = scenario.plan.dispatch == "low_latency"
    hidden = scenario.need_model().need("hidden", "size a row")
    is_ep = scenario.plan.contract == Contract.EP
    size = dispatch_row_bytes(hidden, scenario.dtype.dispatch, low_latency=low_latency and is_ep)
    if not is_ep:
        return [send(scenario, source, peer, size, Role.ROW) for peer in dispatch_peers(scenario, source)]
    if low_latency:
        messages = expert_messages(scenario, where, source)
        return [send(scenario, source, rank, size, Role.DISPATCH) for _, rank in messages if rank != source]
    transfers: list[Transfer] = []
    for route in routes(scenario, where, source):
        if route.fallback and notes is not None:
            notes[f"GPU {source} has no relay for GPU {', '.join(map(str, route.gpus))}: sent straight"] = (
                None
            )
        if route.relay is None:
            transfers += [
                send(scenario, source, gpu, size, Role.DISPATCH) for gpu in route.gpus if gpu != source
            ]
        else:
            transfers.append(send(scenario, source, route.relay, size, Role.DISPATCH))
            transfers += [
                send(scenario, route.relay, gpu, size, Role.FORWARD)
                for gpu in route.gpus
                if gpu != route.relay
            ]
    return transfers

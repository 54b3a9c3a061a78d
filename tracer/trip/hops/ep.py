"""Expert parallelism: the row travels to its experts and back, or the experts travel to the row.

``dispatch`` sends the row to the GPUs of its experts; ``combine`` brings their weighted outputs back and sums
them on the way. Under DWDP tokens stay where they are, and ``weight_pull`` fetches the experts that are not
local.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.mesh.cluster import Tier
from tracer.model.dtype import BYTES, dispatch_row_bytes
from tracer.scenario.plan import Contract, DispatchMode
from tracer.scenario.step import bytes_per_expert
from tracer.trip.hop import Hop, HopKind, Role, Transfer, Where
from tracer.trip.hops.moves import make_hop, moe_sources, send
from tracer.trip.hops.routes import Route, choose_ep_rank, dispatch_peers, expert_messages, routes

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


Known = dict[int, list[Route]]
"""Routes by source, found by dispatch and walked back by combine of the same layer."""


def dispatch(scenario: Scenario, where: Where, known: Known | None = None) -> Hop:
    """Copies of the row to the experts' GPUs.

    High throughput: one copy per GPU inside the home NVLink domain; one IB copy to each remote NVLink
    domain's relay, which forwards one per GPU (DeepSeek-V3 report 3.2.2; DeepEP's normal kernels). Low
    latency: one message straight for each (expert, etp rank). ``ag_rs``: straight to the whole dispatch
    group.
    """
    notes: dict[str, None] = {}
    transfers: list[Transfer] = []
    for source in moe_sources(scenario, where.home):
        transfers += dispatch_from(scenario, where, source, notes, known)
    return make_hop(HopKind.DISPATCH, where, transfers, note="; ".join(notes))


def dispatch_from(
    scenario: Scenario,
    where: Where,
    source: int,
    notes: dict[str, None] | None = None,
    known: Known | None = None,
) -> list[Transfer]:
    """Transfers of the copy that one source rank dispatches; fallbacks are told to ``notes``."""
    low_latency = scenario.plan.dispatch is DispatchMode.LOW_LATENCY
    hidden = scenario.model.expert_row
    is_ep = scenario.plan.contract is Contract.EP
    size = dispatch_row_bytes(hidden, scenario.dtype.dispatch, low_latency=low_latency and is_ep)
    if not is_ep:
        return [send(scenario, source, peer, size, Role.ROW) for peer in dispatch_peers(scenario, source)]
    if low_latency:
        messages = expert_messages(scenario, where, source)
        return [send(scenario, source, rank, size, Role.DISPATCH) for _, rank in messages if rank != source]
    transfers: list[Transfer] = []
    for route in _routes(scenario, where, source, known):
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


def _routes(scenario: Scenario, where: Where, source: int, known: Known | None) -> list[Route]:
    """Routes of one source, taken from ``known`` where they are, and put there where they are not."""
    if known is None:
        return routes(scenario, where, source)
    if source not in known:
        known[source] = routes(scenario, where, source)
    return known[source]


def combine(scenario: Scenario, where: Where, known: Known | None = None) -> Hop:
    """The paths of dispatch, walked back: each GPU's own sum to the relay, one IB copy of theirs home.

    Mirrors dispatch in copies, not in bytes: rows come back in the combine dtype.
    """
    transfers: list[Transfer] = []
    for source in moe_sources(scenario, where.home):
        transfers += combine_to(scenario, where, source, known)
    return make_hop(HopKind.COMBINE, where, transfers)


def combine_to(scenario: Scenario, where: Where, source: int, known: Known | None = None) -> list[Transfer]:
    """Transfers that bring one source rank's copy its results."""
    size = scenario.model.expert_row * BYTES[scenario.dtype.combine]
    if scenario.plan.contract is not Contract.EP:
        return [send(scenario, peer, source, size, Role.PARTIAL) for peer in dispatch_peers(scenario, source)]
    if scenario.plan.dispatch is DispatchMode.LOW_LATENCY:
        messages = expert_messages(scenario, where, source)
        return [send(scenario, rank, source, size, Role.RESULT) for _, rank in messages if rank != source]
    transfers: list[Transfer] = []
    for route in _routes(scenario, where, source, known):
        end = source if route.relay is None else route.relay
        transfers += [send(scenario, gpu, end, size, Role.RESULT) for gpu in route.gpus if gpu != end]
        if route.relay is not None:
            transfers.append(send(scenario, route.relay, source, size, Role.SUM))
    return transfers


def weight_pull(scenario: Scenario, where: Where) -> Hop:
    """Each rank that runs the token's FFN pulls every expert slice it does not hold, picked or not.

    Pulls touch no GPU and add no crossing; their bytes are tallied apart from the token's.
    """
    transfers: list[Transfer] = []
    for puller in moe_sources(scenario, where.home):
        transfers += pulls_to(scenario, where, puller)
    crosses = any(transfer.tier is Tier.IB for transfer in transfers)
    word = scenario.cluster.domain_word
    note = f"WARNING: the dwdp group spans {word}s: weights are pulled over IB" if crosses else ""
    return make_hop(HopKind.WEIGHT_PULL, where, transfers, note=note)


def experts_by_owner(scenario: Scenario, where: Where, puller: int) -> dict[int, list[int]]:
    """Every expert of the layer, under the EP rank that serves it to the puller, ascending."""
    placement = scenario.placement_of(where.layer)
    found: dict[int, list[int]] = {}
    for expert in range(placement.experts):
        found.setdefault(choose_ep_rank(scenario, placement, where, puller, expert), []).append(expert)
    return dict(sorted(found.items()))


def pulls_to(scenario: Scenario, where: Where, puller: int) -> list[Transfer]:
    """One transfer from each rank that owns a slice the puller lacks."""
    mesh, etp_size = scenario.mesh, scenario.mesh.etp
    own = mesh.expert_coordinate(puller, Axis.EP), mesh.expert_coordinate(puller, Axis.ETP)
    edp, whole = mesh.expert_coordinate(puller, Axis.EDP), bytes_per_expert(scenario)
    pulls = []
    for ep, experts in experts_by_owner(scenario, where, puller).items():
        for etp in range(etp_size):
            if (ep, etp) != own:
                slice_bytes = whole * (etp + 1) // etp_size - whole * etp // etp_size
                owner = mesh.expert_rank(where.stage, etp=etp, ep=ep, edp=edp)
                pulls.append(send(scenario, owner, puller, len(experts) * slice_bytes, Role.WEIGHTS))
    return pulls

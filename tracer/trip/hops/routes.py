"""Which replica serves a token and how it is reached: straight, or by a relay on each remote NVLink domain.

Dispatch walks a route forwards and combine walks it back, so both are built from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tracer.mesh.axes import Axis

if TYPE_CHECKING:
    from tracer.scenario.placement import Placement
    from tracer.scenario.scenario import Scenario
    from tracer.trip.hop import Where


class Route(NamedTuple):
    """Copies from one source to one NVLink domain.

    ``relay`` is the NVLink domain's rank with the source's index, or None where copies go straight: inside
    the source's own NVLink domain, or where no such rank is in the dispatch group (``fallback``). ``gpus``
    are the distinct ranks that run a picked expert, the source and the relay included when they do.
    """

    source: int
    relay: int | None
    gpus: tuple[int, ...]
    fallback: bool = False


def expert_ranks(scenario: Scenario, stage: int, ep: int, edp: int) -> list[int]:
    """The etp ranks that hold EP rank ``ep``'s experts in one dispatch group."""
    mesh = scenario.mesh
    return [mesh.expert_rank(stage, etp=etp, ep=ep, edp=edp) for etp in range(mesh.etp)]


def tied_ep_ranks(
    scenario: Scenario, placement: Placement, stage: int, source: int, expert: int
) -> Sequence[int]:
    """EP ranks that serve an expert equally well for a source, in slot order.

    Its own, else those with a rank in its NVLink domain, else all that hold the expert; one entry per slot.
    """
    slots = placement.ep_ranks_of(expert)
    if len(slots) == 1:
        return slots
    mesh, cluster = scenario.mesh, scenario.cluster
    edp, nvlink_domain = mesh.expert_coordinate(source, Axis.EDP), cluster.nvlink_domain_of(source)
    own_ep = mesh.expert_coordinate(source, Axis.EP)
    near = [ep for ep in slots if ep == own_ep] or [
        ep
        for ep in slots
        if any(
            cluster.nvlink_domain_of(rank) == nvlink_domain for rank in expert_ranks(scenario, stage, ep, edp)
        )
    ]
    return near or slots


def choose_ep_rank(scenario: Scenario, placement: Placement, where: Where, source: int, expert: int) -> int:
    """EP rank that serves an expert for a source; ties go by token position modulo their number."""
    ties: Sequence[int] = placement.ep_ranks_of(expert)
    if len(ties) > 1:
        ties = tied_ep_ranks(scenario, placement, where.stage, source, expert)
    return ties[where.position % len(ties)]


def expert_messages(scenario: Scenario, where: Where, source: int) -> list[tuple[int, int]]:
    """(expert, rank) pairs the source's picks lead to: one for each etp rank of each expert."""
    placement, mesh = scenario.placement_of(where.layer), scenario.mesh
    edp, slices = mesh.expert_coordinate(source, Axis.EDP), range(mesh.etp)
    messages = []
    for expert in where.picks:
        ep = choose_ep_rank(scenario, placement, where, source, expert)
        messages += [(expert, mesh.expert_rank(where.stage, etp=etp, ep=ep, edp=edp)) for etp in slices]
    return messages


def routes(scenario: Scenario, where: Where, source: int) -> list[Route]:
    """High-throughput routes of one source, its own NVLink domain first, then in the order of the picks."""
    domain_of = scenario.cluster.nvlink_domain_of
    own = domain_of(source)
    by_nvlink_domain: dict[int, dict[int, None]] = {own: {}}
    for _, rank in expert_messages(scenario, where, source):
        by_nvlink_domain.setdefault(domain_of(rank), {})[rank] = None
    found = []
    for nvlink_domain, gpus in by_nvlink_domain.items():
        relay = None if nvlink_domain == own else _relay(scenario, where, source, nvlink_domain)
        if gpus:
            found.append(Route(source, relay, tuple(gpus), fallback=nvlink_domain != own and relay is None))
    return found


def _relay(scenario: Scenario, where: Where, source: int, nvlink_domain: int) -> int | None:
    """The rank of a remote NVLink domain with the source's index, if the source's dispatch group has it."""
    mesh, cluster = scenario.mesh, scenario.cluster
    rank = cluster.rank_at(nvlink_domain, cluster.index_in_nvlink_domain(source))
    if rank is None or mesh.stage_of(rank) != where.stage:
        return None
    same_group = mesh.expert_coordinate(rank, Axis.EDP) == mesh.expert_coordinate(source, Axis.EDP)
    return rank if same_group else None


def dispatch_peers(scenario: Scenario, source: int) -> list[int]:
    """Every other rank of the source's dispatch group."""
    return [rank for rank in scenario.mesh.group(source, ("etp", "ep")) if rank != source]

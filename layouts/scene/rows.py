"""The NVLink domains of a mesh, for a map that opens and folds them itself: who sits where, in which colour.

A picture places lines once (:mod:`layouts.scene.grid`); the explorer's map places them again for every window
and hop. Both show the same domains: all of a small mesh, of a large one those that the tokens touch, and what
lies between as a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from layouts.scene.grid import tint_of
from layouts.scene.labels import expert_label, first_moe_layer, runs_text, stage_layers_text
from layouts.scene.scene import Domain, Rows, Seat

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

MAX_LISTED_GPUS = 512
"""A mesh of so many GPUs is listed whole; all of a larger one where it is asked, up to ``MAX_ASKED_GPUS``."""
MAX_ASKED_GPUS = 4096
MAX_DOMAINS = 512
MAX_EXPERT_RUNS = 2


def build_rows(scenario: Scenario, ranks: Iterable[int], *, every: bool = False) -> Rows:
    """The domains of a mesh, with the GPUs of those that ``ranks`` touch, or of all where they are few.

    The cost follows the GPUs that are listed, not the size of the mesh.
    """
    cluster, mesh = scenario.cluster, scenario.mesh
    most = MAX_ASKED_GPUS if every else MAX_LISTED_GPUS
    if mesh.world_size <= most:
        listed = list(range(cluster.nvlink_domains))
    else:
        home = cluster.nvlink_domain_of(scenario.home)
        touched = {cluster.nvlink_domain_of(rank) for rank in ranks} | {home}
        listed = sorted(sorted(touched, key=lambda domain: (domain != home, domain))[:MAX_DOMAINS])
    return Rows(
        cluster.gpus_per_nvlink_domain,
        tuple(_domains(scenario, listed)),
        tuple(stage_layers_text(scenario, stage) for stage in range(mesh.stages)),
    )


def _domains(scenario: Scenario, listed: list[int]) -> Iterator[Domain]:
    next_one = 0
    for domain in listed:
        if domain > next_one:
            yield Domain(next_one, domain - next_one)
        yield _domain(scenario, domain)
        next_one = domain + 1
    if next_one < scenario.cluster.nvlink_domains:
        yield Domain(next_one, scenario.cluster.nvlink_domains - next_one)


def _domain(scenario: Scenario, domain: int) -> Domain:
    cluster, mesh = scenario.cluster, scenario.mesh
    seats, held = [], set[int]()
    for place in _places(scenario, domain):
        rank = cluster.rank_at(domain, place)
        if rank is None:
            continue
        stage = mesh.stage_of(rank)
        seats.append(Seat(rank, place, stage, tint_of(scenario, rank), expert_label(scenario, rank)))
        held |= _experts_of(scenario, rank, stage)
    return Domain(domain, 1, tuple(seats), _experts_text(held))


def _places(scenario: Scenario, domain: int) -> Iterable[int]:
    """Places of a domain where a rank may sit, ascending: a domain may have many more than ranks."""
    cluster, world = scenario.cluster, scenario.mesh.world_size
    size = cluster.gpus_per_nvlink_domain
    if cluster.placement is None:
        return range(min(size, world - domain * size))
    if size <= world:
        return range(size)
    here = (rank for rank in range(world) if cluster.nvlink_domain_of(rank) == domain)
    return sorted(cluster.index_in_nvlink_domain(rank) for rank in here)


def _experts_of(scenario: Scenario, rank: int, stage: int) -> set[int]:
    layer = first_moe_layer(scenario, stage)
    if layer is None:
        return set()
    return set(scenario.placement_of(layer).experts_of(scenario.mesh.expert_coordinate(rank, "ep")))


def _experts_text(held: set[int]) -> str:
    if not held:
        return ""
    text = runs_text(sorted(held))
    return text if text.count(",") < MAX_EXPERT_RUNS else f"{len(held):,} experts"

"""EPLB for a scenario: loads of a census in, slot tables out, and the census again with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.census.report import balance
from tracer.batch.census.run import part_of
from tracer.batch.census.take import take_census
from tracer.batch.eplb import Replication, check_slots, rebalance
from tracer.errors import ConfigError
from tracer.mesh.axes import Axis
from tracer.mesh.cluster import nvlink_domains_of
from tracer.scenario.placement import Placement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.census.homes import TokenHomes
    from tracer.batch.census.result import Census
    from tracer.batch.census.run import Progress
    from tracer.batch.picks.source import PickSource
    from tracer.scenario.scenario import Scenario

SCHEMA = 1


@dataclass(frozen=True)
class Rebalanced:
    """A scenario before and after: the replication, and a census of the same picks with each placement.

    The plan shares an expert's load evenly over its replicas; tokens go to the nearest replica, so the
    census after may be less even than planned.
    """

    replication: Replication
    scenario: Scenario
    before: Census
    after: Census

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``placement`` is what a scenario file takes."""
        return {
            "schema": SCHEMA,
            **self.replication.to_dict(self.before.layers),
            "planned_gpu_load": self.replication.gpu_load.tolist(),
            "planned": {
                "gpu_imbalance": float(self.replication.balance().mean()),
                "worst_layer": float(self.replication.balance().max()),
            },
            "before": _summary(self.before),
            "after": _summary(self.after),
        }


def _summary(census: Census) -> dict[str, Any]:
    """Loads and bytes of one census; imbalance is the mean over layers of a layer's max/mean."""
    by_layer = [balance(part.traffic.gpu_load)["max_over_mean"] or 1.0 for part in census.parts]
    return {
        "gpu_imbalance": float(np.mean(by_layer)),
        "worst_layer": max(by_layer),
        "gpu_load": census.gpu_load.tolist(),
        "bytes_by_tier": census.bytes_by_tier("dispatch"),
        "combine_bytes_by_tier": census.bytes_by_tier("combine"),
    }


def own_groups(scenario: Scenario, experts: int) -> int:
    """Expert groups that EPLB keeps together: the model's, or 1 where they do not divide what is placed."""
    groups = scenario.model.expert_groups or 1
    return groups if experts % groups == 0 else 1


def rebalanced(
    scenario: Scenario,
    picks: PickSource,
    *,
    slots: int,
    groups: int | None = None,
    homes: TokenHomes | None = None,
    threads: int = 2,
    progress: Progress | None = None,
) -> Rebalanced:
    """Replicate and pack a scenario's experts by the loads of these picks.

    ``groups`` is the model's expert groups unless given (1, the global policy on several nodes, without any
    and where they do not divide the experts, since shared ones are served as routed ones).

    Raises:
        ConfigError: for slots that do not fit, or a mesh whose EP ranks do not lie node after node.
    """
    check_slots(slots, picks.layers)
    first, second = (None, None) if progress is None else (part_of(progress, 0, 2), part_of(progress, 1, 2))
    before = take_census(scenario, picks, homes=homes, by_layer=True, threads=threads, progress=first)
    loads = np.stack([part.traffic.load for part in before.parts]).astype(np.float64)
    found = rebalance(
        loads,
        slots=slots,
        groups=groups or own_groups(scenario, loads.shape[1]),
        nodes=nvlink_domains_of_group(scenario),
        gpus=scenario.mesh.ep,
    )
    moved = with_slots(scenario, before.layers, found.slots)
    after = take_census(moved, picks, homes=homes, by_layer=True, threads=threads, progress=second)
    return Rebalanced(found, moved, before, after)


def with_slots(scenario: Scenario, layers: tuple[int, ...], slots: NDArray[np.int64]) -> Scenario:
    """The scenario with a slot table of its own in each of the layers; the first serves any other."""
    ep, experts = scenario.mesh.ep, scenario.placement_of(layers[0]).experts
    tables = [Placement.table(row.tolist(), ep, experts) for row in slots]
    by_layer = tuple(zip(layers, tables, strict=True))
    return scenario.with_(placement=tables[0], layer_placements=by_layer)


def nvlink_domains_of_group(scenario: Scenario) -> int:
    """NVLink domains of a dispatch group; its EP ranks must fill one after the other."""
    ranks = scenario.mesh.groups("dispatch")[0]
    eps = scenario.mesh.coordinates_of(ranks)[Axis.EP]
    nvlink_domains = nvlink_domains_of(scenario.cluster, ranks)[np.argsort(eps, kind="stable")]
    nodes = len(np.unique(nvlink_domains))
    if len(np.flatnonzero(np.diff(nvlink_domains))) != nodes - 1 or scenario.mesh.ep % nodes:
        raise ConfigError(
            "mesh.ep",
            scenario.mesh.ep,
            "has EP ranks that do not fill one island after the other",
            "take an order that keeps neighbouring EP ranks on one island",
        )
    return nodes

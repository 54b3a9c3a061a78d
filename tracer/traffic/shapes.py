"""Dispatch groups of a stage by how they sit on the cluster, and what of a group's traffic stays near.

Groups that look alike have the same expected traffic, so each shape is summed over once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.display import exact_sum
from tracer.errors import ConfigError
from tracer.mesh.axes import Axis
from tracer.mesh.group_kinds import GroupKind, group_kinds

if TYPE_CHECKING:
    from tracer.scenario.placement import Placement
    from tracer.scenario.scenario import Scenario

MAX_WORK = 1 << 22
RANK_WORK = 64
"""Pairs that the bare visit of a rank costs as much as."""


@dataclass(frozen=True, slots=True)
class GroupShape:
    """A dispatch group: NVLink domain, index, EP rank and etp rank of each member."""

    nvlink_domains: tuple[int, ...]
    indices: tuple[int, ...]
    ep_ranks: tuple[int, ...]
    etp_ranks: tuple[int, ...]


def dispatch_groups(scenario: Scenario, stage: int) -> Iterator[GroupKind]:
    """One of the dispatch groups of each kind in a stage, with how many there are."""
    return group_kinds(scenario.mesh, scenario.cluster, (Axis.ETP, Axis.EP), stage)


def _group_of(scenario: Scenario, ranks: Sequence[int]) -> GroupShape:
    """A group by its members, NVLink domains renumbered in order of appearance."""
    cluster, numbers = scenario.cluster, dict[int, int]()
    return GroupShape(
        tuple(numbers.setdefault(cluster.nvlink_domain_of(rank), len(numbers)) for rank in ranks),
        tuple(cluster.index_in_nvlink_domain(rank) for rank in ranks),
        tuple(scenario.mesh.expert_coordinate(rank, Axis.EP) for rank in ranks),
        tuple(scenario.mesh.expert_coordinate(rank, Axis.ETP) for rank in ranks),
    )


def group_shapes(scenario: Scenario, stage: int) -> dict[GroupShape, int]:
    """Dispatch groups of a stage that look alike, with how many there are."""
    shapes: dict[GroupShape, int] = {}
    for kind in dispatch_groups(scenario, stage):
        group = _group_of(scenario, kind.ranks)
        shapes[group] = shapes.get(group, 0) + kind.count
    check_work(sum(len(group.nvlink_domains) ** 2 for group in shapes))
    return shapes


def check_sum(ranks: int, each: int) -> None:
    """Refuse a sum that goes through ``each`` partners of every one of ``ranks`` ranks, when that takes long.

    Raises:
        ConfigError: above ``MAX_WORK`` pairs.
    """
    check_work(ranks * each)


def check_work(work: int) -> None:
    """Refuse a sum over more pairs of ranks than ``MAX_WORK``."""
    if work > MAX_WORK:
        raise ConfigError(
            "mesh.ep",
            f"{work:,} pairs of ranks",
            f"are more than the {MAX_WORK:,} that the exact sum goes through",
            "take a smaller ep, or a census of drawn tokens",
        )


def kept_messages(group: GroupShape, placement: Placement, shares: list[float]) -> tuple[float, float]:
    """Messages that stay on their home, and that stay in its NVLink domain, over all homes of a group.

    An EP rank serves what it has itself, else its domain does, in turns where several there have it. An
    expert that a domain shares gets a message for each of its etp ranks that sit in the domain.
    """
    members: dict[int, Counter[int]] = {}
    for ep, domain in zip(group.ep_ranks, group.nvlink_domains, strict=True):
        members.setdefault(domain, Counter())[ep] += 1
    at_home: list[float] = []
    inside: list[float] = []
    for here in members.values():
        slots: dict[int, list[int]] = {}
        for ep in here:
            for expert in placement.experts_on(ep):
                slots.setdefault(expert, []).append(here[ep])
        near = {expert: shares[expert] * sum(ranks) / len(ranks) for expert, ranks in slots.items()}
        whole = exact_sum(near.values())
        for ep, homes in here.items():
            own = set(placement.experts_on(ep))
            itself = exact_sum(shares[expert] for expert in own)
            neighbours = whole - exact_sum(near[expert] for expert in own)
            at_home.append(homes * itself)
            inside.append(homes * (homes * itself + neighbours))
    return exact_sum(at_home), exact_sum(inside)


def pulled_weights(group: GroupShape, placement: Placement, slices: Sequence[int]) -> tuple[int, int]:
    """(bytes inside NVLink domains, bytes between them) that all homes of a group pull in a layer.

    ``slices`` are the bytes of an expert on each etp rank. A home pulls every slice it lacks, from the first
    slot of its NVLink domain that has the expert, else from the first of all.
    """
    held: dict[int, Counter[int]] = {}
    for domain, ep, etp in zip(group.nvlink_domains, group.ep_ranks, group.etp_ranks, strict=True):
        held.setdefault(domain, Counter())[ep] += slices[etp]
    near: dict[int, dict[int, int]] = {}
    for domain, here in held.items():
        first = near.setdefault(domain, {})
        for ep in sorted(here):
            for expert in placement.experts_on(ep):
                first.setdefault(expert, here[ep])
    sums = {domain: sum(first.values()) for domain, first in near.items()}
    nvlink = every = 0
    for domain, ep, etp in zip(group.nvlink_domains, group.ep_ranks, group.etp_ranks, strict=True):
        own = set(placement.experts_on(ep))
        has = len(own) * slices[etp]
        moved = len(own) * held[domain][ep] - sum(near[domain][expert] for expert in own)
        nvlink += sums[domain] + moved - has
        every += placement.experts * sum(slices) - has
    return nvlink, every - nvlink

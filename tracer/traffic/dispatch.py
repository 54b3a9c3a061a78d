"""Expected copies of one token's dispatch under uniform picks: exact sums, no sampling.

Averaged over the homes of the dispatch groups; combine mirrors dispatch in copies. The forms are those
of the counting rules: p(e_domain) an IB copy, p(e_gpu) a copy inside an NVLink domain, and Σ p(e_gpu) over
IB for a domain where the home has no relay.

Replicas that tie take turns by token position, so with them a copy is expected over all positions. A batch
whose positions are no multiple of the turns, or a single token, moves a little more or less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from tracer.display import exact_sum
from tracer.errors import ConfigError
from tracer.mesh.axes import Axis
from tracer.mesh.cluster import indices_of, nvlink_domains_of
from tracer.traffic.chance import HitChance
from tracer.trip.hops.routes import tied_ep_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.mesh.cluster import Int64s
    from tracer.scenario.placement import Placement
    from tracer.scenario.scenario import Scenario

POSITION_WORK = 1 << 18
MAX_WORK = 1 << 22
RANK_WORK = 64
"""Pairs that the bare visit of a rank costs as much as."""


@dataclass(frozen=True, slots=True)
class DispatchCopies:
    """Expected copies per token (of one source rank) by link and by how much is de-duplicated.

    ``nvlink`` and ``ib`` are what moves through relays, one copy per GPU and one per remote NVLink domain.
    ``gpus`` are copies to distinct other GPUs, ``gpus_ib`` those of them on other NVLink domains (no relay);
    ``messages`` one for each (expert, etp rank) that is not home, ``messages_ib`` those between NVLink
    domains.
    """

    nvlink: float
    ib: float
    gpus: float
    gpus_ib: float
    messages: float
    messages_ib: float

    def __add__(self, other: DispatchCopies) -> DispatchCopies:
        return DispatchCopies(*(getattr(self, n) + getattr(other, n) for n in self.__slots__))

    def scaled(self, factor: float) -> DispatchCopies:
        """Every count times ``factor``."""
        return DispatchCopies(*(getattr(self, name) * factor for name in self.__slots__))


NO_COPIES = DispatchCopies(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Group:
    """A dispatch group: NVLink domain, index and EP rank of each member."""

    nvlink_domains: tuple[int, ...]
    indices: tuple[int, ...]
    ep_ranks: tuple[int, ...]


def expected_copies(scenario: Scenario, layer: int) -> DispatchCopies:
    """Copies of a token in a MoE layer, averaged over the homes of the layer's stage and token positions.

    Raises:
        ConfigError: for a mesh or a table of replicas too large to sum over.
    """
    placement = scenario.placement_of(layer)
    stage = scenario.stage_of_layer(layer)
    chance = HitChance.of_model(scenario.model)
    ranks = stage_groups(scenario, stage)
    if placement.has_replicas:
        return _with_replicas(scenario, placement, stage, ranks, chance)
    shapes = _shapes(scenario, ranks)
    _check_work(sum(len(group.nvlink_domains) for group in shapes) * placement.experts)
    served = _Served([placement.ep_ranks_of(e) for e in range(placement.experts)], chance, most=1)
    total = NO_COPIES
    for group, times in shapes.items():
        for home in range(len(group.ep_ranks)):
            total += _home_copies(group, home, served).scaled(times)
    return total.scaled(1 / ranks.size)


def stage_groups(scenario: Scenario, stage: int) -> Int64s:
    """Dispatch groups of one stage, ``[groups, etp·ep]`` ranks."""
    groups = scenario.mesh.groups("dispatch").astype(np.int64)
    found: Int64s = groups[scenario.mesh.coordinates_of(groups[:, 0])[Axis.PP] == stage]
    return found


def groups_alike(scenario: Scenario, ranks: Int64s) -> list[tuple[Int64s, int]]:
    """One of the groups ``[groups, members]`` of each kind, with how many there are.

    Groups are alike when one is the other moved along by whole NVLink domains.
    """
    nvlink_domains, indices = nvlink_domains_of(scenario.cluster, ranks), indices_of(scenario.cluster, ranks)
    eps = scenario.mesh.coordinates_of(ranks)[Axis.EP]
    seen = np.concatenate([nvlink_domains - nvlink_domains[:, :1], indices, eps], axis=1).astype(np.int64)
    kinds = [row.tobytes() for row in seen]
    first: dict[bytes, int] = {}
    for place, kind in enumerate(kinds):
        first.setdefault(kind, place)
    counts = Counter(kinds)
    return [(ranks[place], counts[kind]) for kind, place in first.items()]


def _shapes(scenario: Scenario, ranks: Int64s) -> dict[_Group, int]:
    """Groups that look alike (NVLink domains renumbered in order of appearance), with how many there are."""
    shapes: dict[_Group, int] = {}
    for row, times in groups_alike(scenario, ranks):
        numbers: dict[int, int] = {}
        nvlink_domains = nvlink_domains_of(scenario.cluster, row).tolist()
        renamed = tuple(numbers.setdefault(nvlink_domain, len(numbers)) for nvlink_domain in nvlink_domains)
        indices = tuple(indices_of(scenario.cluster, row).tolist())
        group = _Group(renamed, indices, tuple(scenario.mesh.coordinates_of(row)[Axis.EP].tolist()))
        shapes[group] = shapes.get(group, 0) + times
    _check_work(sum(len(group.nvlink_domains) ** 2 for group in shapes))
    return shapes


def check_sum(ranks: int, each: int) -> None:
    """Refuse a sum that goes through ``each`` partners of every one of ``ranks`` ranks, when that takes long.

    Raises:
        ConfigError: above ``MAX_WORK`` pairs.
    """
    _check_work(ranks * each)


def _check_work(work: int) -> None:
    if work > MAX_WORK:
        raise ConfigError(
            "mesh.ep",
            f"{work:,} pairs of ranks",
            f"are more than the {MAX_WORK:,} that the exact sum goes through",
            "take a smaller ep, or a census of drawn tokens",
        )


class _Served:
    """How often one home's tokens reach some EP ranks, over all token positions.

    ``ties``: for each expert the EP ranks that take turns in serving it, by position modulo their number. A
    chance is a mean over as many positions as the common multiple of the turns that matter to it: those of
    experts whose turns the EP ranks in question share with others. Above ``most`` the first positions stand
    for all.
    """

    def __init__(self, ties: Sequence[Sequence[int]], chance: HitChance, most: int) -> None:
        self.ties, self.chance, self.most = ties, chance, most
        self.experts_at: dict[int, list[int]] = {}
        for expert, tie in enumerate(ties):
            for ep in set(tie):
                self.experts_at.setdefault(ep, []).append(expert)
        self._hits: dict[frozenset[int], float] = {}

    def hit(self, eps: frozenset[int]) -> float:
        """Chance that a token has at least one expert on these EP ranks."""
        if eps not in self._hits:
            self._hits[eps] = self._mean_hit(eps)
        return self._hits[eps]

    def _mean_hit(self, eps: frozenset[int]) -> float:
        reached = {expert for ep in eps for expert in self.experts_at.get(ep, ())}
        always = {expert for expert in reached if eps.issuperset(self.ties[expert])}
        turns = sorted(reached - always)
        positions = min(lcm(*(len(self.ties[expert]) for expert in turns)), self.most)
        found = []
        for position in range(positions):
            tied = (e for e in turns if self.ties[e][position % len(self.ties[e])] in eps)
            found.append(self.chance.of_set(always.union(tied)))
        return exact_sum(found) / positions

    def picks(self, ep: int) -> float:
        """Expected picks of a token among the experts that an EP rank serves."""
        return exact_sum(
            self.chance.picks_of((expert,)) * self.ties[expert].count(ep) / len(self.ties[expert])
            for expert in self.experts_at.get(ep, ())
        )


def _home_copies(group: _Group, home: int, served: _Served) -> DispatchCopies:
    """Copies from one home of a group."""
    own = group.nvlink_domains[home]
    hits = [served.hit(frozenset((ep,))) for ep in group.ep_ranks]
    picks = [served.picks(ep) for ep in group.ep_ranks]
    nvlink = exact_sum(hit for i, hit in enumerate(hits) if group.nvlink_domains[i] == own and i != home)
    messages = exact_sum(picks) - picks[home]
    messages_ib = exact_sum(pick for i, pick in enumerate(picks) if group.nvlink_domains[i] != own)
    gpus_ib = exact_sum(hit for i, hit in enumerate(hits) if group.nvlink_domains[i] != own)
    gpus = nvlink + gpus_ib
    ib = 0.0
    for nvlink_domain in set(group.nvlink_domains) - {own}:
        there = [i for i, at in enumerate(group.nvlink_domains) if at == nvlink_domain]
        relays = [i for i in there if group.indices[i] == group.indices[home]]
        if not relays:
            ib += exact_sum(hits[i] for i in there)
            continue
        ib += served.hit(frozenset(group.ep_ranks[i] for i in there))
        nvlink += exact_sum(hits[i] for i in there if i != relays[0])
    return DispatchCopies(nvlink, ib, gpus, gpus_ib, messages, messages_ib)


def _with_replicas(
    scenario: Scenario, placement: Placement, stage: int, ranks: Int64s, chance: HitChance
) -> DispatchCopies:
    """Average over homes, each with replicas of its own choice, and over token positions."""
    nvlink_domains, indices = nvlink_domains_of(scenario.cluster, ranks), indices_of(scenario.cluster, ranks)
    eps = scenario.mesh.coordinates_of(ranks)[Axis.EP]
    _check_work(ranks.size * (ranks.shape[1] + placement.experts))
    most = max(1, POSITION_WORK // (ranks.size * ranks.shape[1]))
    total = NO_COPIES
    for row in range(len(ranks)):
        group = _Group(
            tuple(nvlink_domains[row].tolist()), tuple(indices[row].tolist()), tuple(eps[row].tolist())
        )
        for home, source in enumerate(ranks[row].tolist()):
            served = _Served(_ties(scenario, placement, stage, source), chance, most)
            total += _home_copies(group, home, served)
    return total.scaled(1 / ranks.size)


def _ties(scenario: Scenario, placement: Placement, stage: int, source: int) -> list[Sequence[int]]:
    """EP ranks that serve each expert equally well for a source."""
    return [tied_ep_ranks(scenario, placement, stage, source, e) for e in range(placement.experts)]


def expected_messages(scenario: Scenario, layer: int) -> tuple[float, float]:
    """(messages per token, those between NVLink domains) without de-duplication, mean of a layer's homes.

    One for each (expert, etp rank) that is not home; exact whatever the ties, for picks add up.
    """
    placement, stage = scenario.placement_of(layer), scenario.stage_of_layer(layer)
    chance = HitChance.of_model(scenario.model)
    shares = [chance.picks_of((expert,)) for expert in range(placement.experts)]
    ranks = stage_groups(scenario, stage)
    alike = groups_alike(scenario, ranks)
    each = max(RANK_WORK, ranks.shape[1], placement.experts if placement.has_replicas else 0)
    check_sum(sum(len(row) for row, _ in alike), each)
    plain = (
        None if placement.has_replicas else _by_ep(_ties(scenario, placement, stage, 0), shares, placement.ep)
    )
    messages = crossing = 0.0
    for row, times in alike:
        nvlink_domains, eps = (
            nvlink_domains_of(scenario.cluster, row),
            scenario.mesh.coordinates_of(row)[Axis.EP],
        )
        for home, source in enumerate(row.tolist()):
            by_ep = plain
            if by_ep is None:
                by_ep = _by_ep(_ties(scenario, placement, stage, source), shares, placement.ep)
            picks = by_ep[eps]
            messages += times * float(picks.sum() - picks[home])
            crossing += times * float(picks[nvlink_domains != nvlink_domains[home]].sum())
    return messages / ranks.size, crossing / ranks.size


def _by_ep(ties: list[Sequence[int]], shares: list[float], ep: int) -> NDArray[np.float64]:
    """Expected picks by EP rank ``[ep]``, ties shared evenly."""
    found = np.zeros(ep)
    for tie, share in zip(ties, shares, strict=True):
        for rank in tie:
            found[rank] += share / len(tie)
    return found

"""Expected copies of one token's dispatch under uniform picks: exact sums, no sampling.

Averaged over the homes of the dispatch groups; combine mirrors dispatch in copies. The forms are those
of the counting rules: p(e_domain) an IB copy, p(e_gpu) a copy inside an NVLink domain, and Σ p(e_gpu) over
IB for a domain where the home has no relay.

Replicas that tie take turns by token position, so with them a copy is expected over all positions. A batch
whose positions are no multiple of the turns, or a single token, moves a little more or less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING

from tracer.display import exact_sum
from tracer.errors import ConfigError
from tracer.mesh.axes import Axis
from tracer.mesh.group_kinds import GroupKind, group_kinds
from tracer.traffic.chance import HitChance
from tracer.trip.hops.routes import tied_ep_ranks

if TYPE_CHECKING:
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
    if placement.has_replicas:
        return _with_replicas(scenario, placement, stage, chance)
    shapes = _shapes(scenario, stage)
    _check_work(sum(len(group.nvlink_domains) for group in shapes) * placement.experts)
    served = _Served([placement.ep_ranks_of(e) for e in range(placement.experts)], chance, most=1)
    total = NO_COPIES
    for group, times in shapes.items():
        for home in range(len(group.ep_ranks)):
            total += _home_copies(group, home, served).scaled(times)
    return total.scaled(1 / scenario.mesh.stage_size)


def dispatch_groups(scenario: Scenario, stage: int) -> Iterator[GroupKind]:
    """One of the dispatch groups of each kind in a stage, with how many there are."""
    return group_kinds(scenario.mesh, scenario.cluster, (Axis.ETP, Axis.EP), stage)


def _group_of(scenario: Scenario, ranks: Sequence[int]) -> _Group:
    """A group by its members, NVLink domains renumbered in order of appearance."""
    cluster, numbers = scenario.cluster, dict[int, int]()
    return _Group(
        tuple(numbers.setdefault(cluster.nvlink_domain_of(rank), len(numbers)) for rank in ranks),
        tuple(cluster.index_in_nvlink_domain(rank) for rank in ranks),
        tuple(scenario.mesh.expert_coordinate(rank, Axis.EP) for rank in ranks),
    )


def _shapes(scenario: Scenario, stage: int) -> dict[_Group, int]:
    """Dispatch groups of a stage that look alike, with how many there are."""
    shapes: dict[_Group, int] = {}
    for kind in dispatch_groups(scenario, stage):
        group = _group_of(scenario, kind.ranks)
        shapes[group] = shapes.get(group, 0) + kind.count
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


def _with_replicas(scenario: Scenario, placement: Placement, stage: int, chance: HitChance) -> DispatchCopies:
    """Average over homes, each with replicas of its own choice, and over token positions."""
    alike = list(dispatch_groups(scenario, stage))
    members, ranks = scenario.mesh.dispatch_size, sum(len(kind.ranks) for kind in alike)
    _check_work(ranks * (members + placement.experts))
    most = max(1, POSITION_WORK // (ranks * members))
    total = NO_COPIES
    for kind in alike:
        group = _group_of(scenario, kind.ranks)
        for home, source in enumerate(kind.ranks):
            served = _Served(_ties(scenario, placement, stage, source), chance, most)
            total += _home_copies(group, home, served).scaled(kind.count)
    return total.scaled(1 / scenario.mesh.stage_size)


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
    alike = list(dispatch_groups(scenario, stage))
    each = max(RANK_WORK, scenario.mesh.dispatch_size, placement.experts if placement.has_replicas else 0)
    check_sum(sum(len(kind.ranks) for kind in alike), each)
    plain = (
        None if placement.has_replicas else _by_ep(_ties(scenario, placement, stage, 0), shares, placement.ep)
    )
    messages = crossing = 0.0
    for kind in alike:
        group = _group_of(scenario, kind.ranks)
        for home, source in enumerate(kind.ranks):
            by_ep = plain or _by_ep(_ties(scenario, placement, stage, source), shares, placement.ep)
            picks = [by_ep[ep] for ep in group.ep_ranks]
            own = group.nvlink_domains[home]
            away = (pick for pick, at in zip(picks, group.nvlink_domains, strict=True) if at != own)
            messages += kind.count * (exact_sum(picks) - picks[home])
            crossing += kind.count * exact_sum(away)
    return messages / scenario.mesh.stage_size, crossing / scenario.mesh.stage_size


def _by_ep(ties: list[Sequence[int]], shares: list[float], ep: int) -> list[float]:
    """Expected picks by EP rank ``[ep]``, ties shared evenly."""
    found = [0.0] * ep
    for tie, share in zip(ties, shares, strict=True):
        for rank in tie:
            found[rank] += share / len(tie)
    return found

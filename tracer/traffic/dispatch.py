"""Expected copies of one token's dispatch under uniform picks: exact sums, no sampling.

Averaged over the homes of the dispatch groups; combine mirrors dispatch in copies. The forms are those
of the counting rules: p(e_domain) an IB copy, p(e_gpu) a copy inside an NVLink domain, and Σ p(e_gpu) over
IB for a domain where the home has no relay.

Replicas that tie take turns by token position, so with them a copy is expected over all positions. A batch
whose positions are no multiple of the turns, or a single token, moves a little more or less.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm
from typing import TYPE_CHECKING

from tracer.display import exact_sum
from tracer.traffic.chance import HitChance
from tracer.traffic.shapes import RANK_WORK, GroupShape, check_sum, check_work, group_shapes, kept_messages

if TYPE_CHECKING:
    from tracer.scenario.placement import Placement
    from tracer.scenario.scenario import Scenario

POSITION_WORK = 1 << 18


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


def expected_copies(scenario: Scenario, layer: int) -> DispatchCopies:
    """Copies of a token in a MoE layer, averaged over the homes of the layer's stage and token positions.

    Raises:
        ConfigError: for a mesh or a table of replicas too large to sum over.
    """
    placement, chance = scenario.placement_of(layer), HitChance.of_model(scenario.model)
    shapes = group_shapes(scenario, scenario.stage_of_layer(layer))
    ranks = sum(len(group.ep_ranks) for group in shapes)
    check_work(ranks * placement.experts)
    most = max(1, POSITION_WORK // (ranks * scenario.mesh.dispatch_size)) if placement.has_replicas else 1
    total = NO_COPIES
    for group, times in shapes.items():
        total += _group_copies(group, placement, chance, most).scaled(times)
    messages, messages_ib = expected_messages(scenario, layer)
    return replace(total.scaled(1 / scenario.mesh.stage_size), messages=messages, messages_ib=messages_ib)


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

    def with_own(self, own: int) -> _Served:
        """The same where an EP rank serves what it has alone: only ranks it shared it with change."""
        kept = self.experts_at.get(own, [])
        if all(own == ep for expert in kept for ep in self.ties[expert]):
            return self
        ties, changed = list(self.ties), {own}
        for expert in kept:
            changed.update(ties[expert])
            ties[expert] = tuple(ep for ep in ties[expert] if ep == own)
        found = copy(self)
        found.ties = ties
        found.experts_at = dict(self.experts_at)
        for ep in changed:
            found.experts_at[ep] = [expert for expert in self.experts_at[ep] if ep in ties[expert]]
        found._hits = {eps: hit for eps, hit in self._hits.items() if changed.isdisjoint(eps)}
        return found

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


class _Near:
    """What tokens of one NVLink domain of a group reach, for homes of one EP rank after the other.

    Replicas in the domain serve before others, and an EP rank serves itself before both. So the homes of a
    domain differ in what its own EP ranks serve, and reach all others alike: those are added up once.
    """

    def __init__(
        self, group: GroupShape, domain: int, placement: Placement, chance: HitChance, most: int
    ) -> None:
        self.group, self.domain = group, domain
        self.own: tuple[int, _Served] | None = None
        at = zip(group.ep_ranks, group.nvlink_domains, strict=True)
        self.near = {ep for ep, there in at if there == domain}
        ties = [placement.ep_ranks_of(expert) for expert in range(placement.experts)]
        ties = [tuple(ep for ep in tie if ep in self.near) or tie for tie in ties]
        self.served = _Served(ties, chance, most)
        self.members: dict[int, list[int]] = {}
        for member, there in enumerate(group.nvlink_domains):
            self.members.setdefault(there, []).append(member)
        self.alike = {
            there: _Reached.of(group, members, self.served)
            for there, members in self.members.items()
            if self.near.isdisjoint(group.ep_ranks[member] for member in members)
        }

    def copies(self, home: int) -> DispatchCopies:
        """Copies from one home of the domain, messages aside."""
        group, served = self.group, self._served_at(self.group.ep_ranks[home])
        inside = [member for member in self.members[self.domain] if member != home]
        nvlink = near = exact_sum(served.hit(frozenset((group.ep_ranks[member],))) for member in inside)
        ib = gpus_ib = 0.0
        for there, members in self.members.items():
            if there == self.domain:
                continue
            reached = self.alike.get(there) or _Reached.of(group, members, served)
            gpus_ib += reached.gpus
            relay = reached.relays.get(group.indices[home])
            if relay is None:
                ib += reached.gpus
            else:
                ib += reached.domain
                nvlink += reached.gpus - relay
        return DispatchCopies(nvlink, ib, near + gpus_ib, gpus_ib, 0.0, 0.0)

    def _served_at(self, own: int) -> _Served:
        """Who serves tokens of an EP rank of the domain: itself what it has, and its neighbours the rest."""
        if self.own is None or self.own[0] != own:
            self.own = (own, self.served.with_own(own))
        return self.own[1]


@dataclass(frozen=True, slots=True)
class _Reached:
    """Chances at the members of one remote NVLink domain, added up; ``relays`` by index."""

    gpus: float
    domain: float
    relays: dict[int, float]

    @classmethod
    def of(cls, group: GroupShape, members: Sequence[int], served: _Served) -> _Reached:
        """The members' chances by what serves a home's tokens."""
        eps = [group.ep_ranks[member] for member in members]
        hits = [served.hit(frozenset((ep,))) for ep in eps]
        relays: dict[int, float] = {}
        for member, hit in zip(members, hits, strict=True):
            relays.setdefault(group.indices[member], hit)
        return cls(exact_sum(hits), served.hit(frozenset(eps)), relays)


@lru_cache(maxsize=256)
def _group_copies(group: GroupShape, placement: Placement, chance: HitChance, most: int) -> DispatchCopies:
    """Copies from all homes of a group, messages aside; shapes that recur are summed once."""
    homes: dict[int, list[int]] = {}
    for home, domain in enumerate(group.nvlink_domains):
        homes.setdefault(domain, []).append(home)
    total = NO_COPIES
    for domain, own in homes.items():
        near = _Near(group, domain, placement, chance, most)
        for home in sorted(own, key=lambda home: group.ep_ranks[home]):
            total += near.copies(home)
    return total


def expected_messages(scenario: Scenario, layer: int) -> tuple[float, float]:
    """(messages per token, those between NVLink domains) without de-duplication, mean of a layer's homes.

    One for each (expert, etp rank) that is not home; exact whatever the ties, for picks add up.
    """
    placement, stage = scenario.placement_of(layer), scenario.stage_of_layer(layer)
    chance = HitChance.of_model(scenario.model)
    shares = [chance.picks_of((expert,)) for expert in range(placement.experts)]
    shapes = group_shapes(scenario, stage)
    each = max(RANK_WORK, placement.slots_on(0))
    check_sum(sum(len(group.ep_ranks) for group in shapes), each)
    every = exact_sum(shares) * scenario.mesh.etp
    messages = crossing = 0.0
    for group, times in shapes.items():
        at_home, inside = kept_messages(group, placement, shares)
        homes = len(group.ep_ranks)
        messages += times * (homes * every - at_home)
        crossing += times * (homes * every - inside)
    return messages / scenario.mesh.stage_size, crossing / scenario.mesh.stage_size

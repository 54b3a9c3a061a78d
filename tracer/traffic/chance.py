"""The chance that uniform top-k picks hit a set of experts, in closed form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import comb
from typing import TYPE_CHECKING

from tracer.display import exact_sum

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec

WHY = "compute the chance of a pick"


@dataclass(frozen=True, slots=True)
class HitChance:
    """Chances under uniform picks without repeats; with groups, ``kept`` of ``groups`` are drawn first.

    p(e) = 1 - C(E-e, k)/C(E, k). With group-limited routing the token first keeps ``kept`` of ``groups``
    equal groups, then picks k experts of those alone: the mean of the same expression over all choices
    of groups, counted by how many experts of the set a choice keeps. Ids from ``experts`` on are shared
    experts served as routed ones: every token picks them. ``zero`` experts without weights may be picked in
    the place of others; with groups there are none.

    >>> HitChance(experts=32, top_k=2).of_count(16)
    0.7580645161290323
    """

    experts: int
    top_k: int
    groups: int = 1
    kept: int = 1
    zero: int = 0
    _memo: dict[tuple[int, ...], float] = field(init=False, repr=False, compare=False, default_factory=dict)

    @classmethod
    def of_model(cls, model: ModelSpec) -> HitChance:
        """The chances of a model's router when every expert is as good as another."""
        experts, top_k = model.need("experts", WHY), model.need("top_k", WHY)
        groups, kept = model.expert_groups or 1, model.top_groups or 1
        limited = kept < groups
        return cls(experts, top_k, groups, kept) if limited else cls(experts, top_k, zero=model.zero_experts)

    @property
    def mean_picks(self) -> float:
        """Expected picks of a token that lead to an expert with weights: k where all have some."""
        total = self.experts + self.zero
        return self.top_k * self.experts / total if self.zero else self.top_k

    @property
    def limited(self) -> bool:
        """Whether picks are limited to some expert groups."""
        return self.kept < self.groups

    def of_count(self, count: int) -> float:
        """Chance that a token picks at least one of ``count`` experts, groups not limiting."""
        total = self.experts + self.zero
        return 1.0 - comb(total - count, self.top_k) / comb(total, self.top_k)

    def of_set(self, experts: Iterable[int]) -> float:
        """Chance that a token picks at least one of these experts (ids, each once)."""
        distinct = set(experts)
        if distinct and max(distinct) >= self.experts:
            return 1.0
        if not self.limited:
            return self._remembered((len(distinct),))
        share = self.experts // self.groups
        return self._remembered(tuple(sorted(Counter(expert // share for expert in distinct).values())))

    def picks_of(self, experts: Iterable[int]) -> float:
        """Expected picks of a token among these experts."""
        return exact_sum(
            self.mean_picks / self.experts if expert < self.experts else 1.0 for expert in set(experts)
        )

    def _remembered(self, counts: tuple[int, ...]) -> float:
        if counts not in self._memo:
            self._memo[counts] = self._limited(counts) if self.limited else self.of_count(counts[0])
        return self._memo[counts]

    def _limited(self, counts: tuple[int, ...]) -> float:
        """Chance for a set with ``counts`` experts in the groups it touches."""
        pool = self.experts // self.groups * self.kept
        choices = _subset_sums(counts, self.groups - len(counts), self.kept)
        missed = sum(ways * comb(pool - hit, self.top_k) for hit, ways in choices.items())
        return 1.0 - missed / (comb(self.groups, self.kept) * comb(pool, self.top_k))


def _subset_sums(counts: tuple[int, ...], empty: int, size: int) -> dict[int, int]:
    """How many choices of ``size`` groups hold each total, with ``empty`` more groups that hold none."""
    ways: Counter[tuple[int, int]] = Counter({(0, 0): 1})
    for count in counts:
        grown = Counter({(chosen + 1, total + count): n for (chosen, total), n in ways.items()})
        ways += grown
    sums: Counter[int] = Counter()
    for (chosen, total), number in ways.items():
        if chosen <= size:
            sums[total] += number * comb(empty, size - chosen)
    return dict(sums)

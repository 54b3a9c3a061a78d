"""Causal attention's work on each CP rank: zigzag against contiguous.

Position p attends to itself and everything before it: p + 1 (query, key) pairs. In units of half a chunk
squared, chunk i of the 2·cp costs 2i + 1 (i whole blocks before it, and half of its own), so at cp = 2
the chunks cost 1, 3, 5, 7: zigzag pairs them to 8 and 8, contiguous to 4 and 12 (Llama 3, section 3.3.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.scenario.plan import PromptCut

if TYPE_CHECKING:
    from tracer.scenario.landing import Landing
    from tracer.scenario.scenario import BareScenario

MAX_LISTED_CP = 1 << 16
_SHOWN = 32


def pairs_between(start: int, stop: int) -> int:
    """(query, key) pairs of the causal queries ``start`` to ``stop`` - 1.

    >>> pairs_between(0, 4)
    10
    """
    return (stop * (stop + 1) - start * (start + 1)) // 2


def chunk_units(chunk: int) -> int:
    """Cost of a chunk of the prompt, in half-chunk units.

    >>> [chunk_units(chunk) for chunk in range(4)]
    [1, 3, 5, 7]
    """
    return 2 * chunk + 1


@dataclass(frozen=True, slots=True)
class RankWork:
    """Causal work of one CP rank.

    ``runs`` are its positions, padding included; ``pairs`` the (query, key) pairs of the prompt's own
    queries, ``padding_pairs`` those of padding that a kernel computes all the same. ``chunks`` are its two
    of the prompt's 2·cp, and ``units`` their cost in half-chunk units, padding included. ``of_mean`` is
    ``pairs`` over the mean of all CP ranks. CP ranks that share heads (``head_parts`` of them) each have all
    positions and chunks of the others too, for their part of the heads; ``pairs`` are those of one head.
    """

    cp: int
    runs: tuple[range, ...]
    chunks: tuple[int, ...]
    units: int
    pairs: int
    padding_pairs: int
    of_mean: float
    head_parts: int = 1

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "cp": self.cp,
            "positions": [[run.start, run.stop] for run in self.runs],
            "chunks": list(self.chunks),
            "units": self.units,
            "pairs": self.pairs,
            "padding_pairs": self.padding_pairs,
            "of_mean": self.of_mean,
            "head_parts": self.head_parts,
        }


@dataclass(frozen=True, slots=True)
class CausalWork:
    """Work of all CP ranks under one cutting rule; ``imbalance`` is the busiest rank's over the mean."""

    rule: str
    ranks: tuple[RankWork, ...]

    @property
    def pairs(self) -> int:
        """Pairs of the whole prompt: T(T+1)/2."""
        return sum(rank.pairs for rank in self.ranks) // self.ranks[0].head_parts

    @property
    def imbalance(self) -> float:
        """Pairs of the busiest rank over the mean; 1 is even."""
        return max(rank.of_mean for rank in self.ranks)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        ranks = [rank.to_dict() for rank in self.ranks]
        return {"rule": self.rule, "pairs": self.pairs, "imbalance": self.imbalance, "ranks": ranks}


def rank_work(landing: Landing, cp: int, head_parts: int = 1) -> RankWork:
    """Work of one CP rank, whatever their number; ``head_parts`` neighbours share heads (Ulysses).

    >>> from tracer.scenario.landing import Landing
    >>> [rank_work(Landing(64, cp=2, tp=2), cp).units for cp in (0, 1)]
    [8, 8]
    """
    first, prompt = cp // head_parts * head_parts, landing.prompt
    sharers = range(first, first + head_parts)
    runs = tuple(run for each in sharers for run in landing.positions_of_share(each))
    chunks = tuple(chunk for each in sharers for chunk in _chunks(landing, each))
    pairs = sum(pairs_between(min(run.start, prompt), min(run.stop, prompt)) for run in runs)
    with_padding = sum(pairs_between(run.start, run.stop) for run in runs)
    of_mean = pairs * landing.cp / head_parts / pairs_between(0, prompt)
    units = sum(map(chunk_units, chunks))
    return RankWork(cp, runs, chunks, units, pairs, with_padding - pairs, of_mean, head_parts)


def _chunks(landing: Landing, cp: int) -> tuple[int, int]:
    """The two of a prompt's 2·cp chunks that land on a CP rank."""
    return (cp, 2 * landing.cp - 1 - cp) if landing.is_zigzag else (2 * cp, 2 * cp + 1)


def causal_work(landing: Landing, head_parts: int = 1) -> CausalWork:
    """Work of every CP rank as the landing cuts the prompt.

    Raises:
        ConfigError: above ``MAX_LISTED_CP`` ranks.
    """
    if landing.cp > MAX_LISTED_CP:
        rule = f"is more than the {MAX_LISTED_CP:,} CP ranks whose work can be listed"
        raise ConfigError("mesh.cp", landing.cp, rule, "ask for one rank: tokentrip rank SCENARIO RANK")
    rule = PromptCut.ZIGZAG if landing.is_zigzag else PromptCut.CONTIGUOUS
    return CausalWork(rule, tuple(rank_work(landing, cp, head_parts) for cp in range(landing.cp)))


def compare_causal_work(scenario: BareScenario) -> dict[str, CausalWork]:
    """Both cutting rules on a scenario's prompt, by name; the scenario's own stands first.

    Raises:
        ConfigError: as :func:`causal_work`.
    """
    own = scenario.plan.landing
    rules = (own, *(rule for rule in PromptCut if rule is not own))
    parts = scenario.plan.head_parts(scenario.mesh.cp)
    return {
        str(rule): causal_work(replace(scenario.landing, zigzag=rule is PromptCut.ZIGZAG), parts)
        for rule in rules
    }


def causal_work_text(scenario: BareScenario) -> str:
    """Both rules side by side, a line a CP rank."""
    works = compare_causal_work(scenario)
    cp, padding = scenario.landing.cp, scenario.landing.padded - scenario.token.prompt
    padded = f", padded by {padding} rows" if padding else ""
    lines = [f"causal work of {scenario.token.prompt:,} positions over cp {cp}{padded}"]
    parts = scenario.plan.head_parts(scenario.mesh.cp)
    if parts > 1:
        lines.append(
            f"{parts} CP ranks share heads: each works on all of their positions, for 1/{parts} of them"
        )
    for name, work in works.items():
        lines.append(f"{name}: the busiest rank does {work.imbalance:.3f} of the mean")
        lines += [f"  CP rank {rank.cp}: {_rank_line(rank)}" for rank in work.ranks[:_SHOWN]]
        lines += [f"  … {cp - _SHOWN:,} more"] if cp > _SHOWN else []
    return "\n".join(lines)


def _rank_line(rank: RankWork) -> str:
    chunks = " and ".join(map(str, rank.chunks))
    costs = " + ".join(str(chunk_units(chunk)) for chunk in rank.chunks)
    padding = f", {rank.padding_pairs:,} more of padding" if rank.padding_pairs else ""
    return f"chunks {chunks}: {costs} = {rank.units} units; {rank.pairs:,} pairs{padding}"

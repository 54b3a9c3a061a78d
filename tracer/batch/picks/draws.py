"""Models of routing that draw picks: uniform, Zipf, given popularity, a hot expert, correlated tokens.

Every draw is without repeats, as top-k is, and depends on the seed, the layer and the block of tokens
alone, so that a batch of any length is drawn in blocks, in any order, on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracer.batch.picks.inclusion import checked_popularity
from tracer.errors import ConfigError, one_of, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.picks.source import Picks
    from tracer.model.spec import ModelSpec

    Floats = NDArray[np.float64]

DRAW_BLOCK = 1 << 14
KINDS = ("uniform", "zipf", "hot", "popularity")
MAX_REDRAWS = 32


@dataclass(frozen=True, slots=True)
class DrawnPicks:
    """Picks ``[layers, tokens, top_k]`` drawn on demand, int16.

    ``popularity`` weighs experts (None: all alike). ``groups`` > ``kept``: a token first keeps ``kept`` of
    ``groups`` equal groups at random. ``sticky`` is the chance that a token repeats the picks of the token
    before it (in the same block of ``DRAW_BLOCK``): each expert's share stays, loads swing more.
    ``zero`` experts without weights are drawn too, as -1 (no pick).

    Raises:
        ConfigError: for sizes or weights that cannot be drawn from.
    """

    layers: int
    tokens: int
    top_k: int
    experts: int
    seed: int = 0
    popularity: Floats | None = None
    groups: int = 1
    kept: int = 1
    sticky: float = 0.0
    zero: int = 0
    _edges: Floats | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        for name in ("layers", "tokens", "top_k", "experts"):
            whole_number(name, getattr(self, name))
        whole_number("seed", self.seed, at_least=0)
        pool = self.experts // self.groups * self.kept if self.groups > self.kept else self.experts
        if self.top_k > pool:
            raise ConfigError("top_k", self.top_k, f"must be at most the {pool} experts", f"try {pool}")
        if not 0 <= self.sticky < 1:
            raise ConfigError("sticky", self.sticky, "must be from 0 to below 1", "try 0.5")
        if self.popularity is not None:
            weights = checked_popularity(self.popularity, self.top_k)
            object.__setattr__(self, "_edges", np.cumsum(weights))

    @classmethod
    def of_model(
        cls,
        model: ModelSpec,
        tokens: int,
        *,
        popularity: Floats | None = None,
        sticky: float = 0.0,
        seed: int = 0,
    ) -> DrawnPicks:
        """Draws for every MoE layer of a model, group-limited when its router is."""
        experts, top_k = model.need("experts", "draw picks"), model.need("top_k", "draw picks")
        groups, kept = model.expert_groups or 1, model.top_groups or 1
        limited = kept < groups and popularity is None
        return cls(
            model.moe_layers,
            tokens,
            top_k,
            experts,
            seed,
            popularity,
            groups if limited else 1,
            kept if limited else 1,
            sticky,
            0 if limited or popularity is not None else model.zero_experts,
        )

    def read(self, layer: int, start: int, stop: int) -> Picks:
        """Picks of tokens ``start`` to ``stop``, drawn block by block ``[n, top_k]`` int16."""
        first, last = start // DRAW_BLOCK, -(-stop // DRAW_BLOCK)
        blocks = [self._block(layer, block) for block in range(first, last)]
        drawn = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        offset = first * DRAW_BLOCK
        return np.ascontiguousarray(drawn[start - offset : stop - offset])

    def _block(self, layer: int, block: int) -> Picks:
        rng = np.random.default_rng((self.seed, layer, block))
        count = min(DRAW_BLOCK, self.tokens - block * DRAW_BLOCK)
        if self.groups > self.kept:
            drawn = self._grouped(rng, count)
        else:
            drawn = _without_repeats(rng, count, self.top_k, self.experts + self.zero, self._edges)
            drawn[drawn >= self.experts] = -1
        if self.sticky:
            drawn = drawn[_repeats(rng, count, self.sticky)]
        return drawn.astype(np.int16 if self.experts <= 1 << 15 else np.int32)

    def _grouped(self, rng: np.random.Generator, count: int) -> Picks:
        """Groups first, then experts of the groups kept."""
        share = self.experts // self.groups
        groups = rng.permuted(np.tile(np.arange(self.groups), (count, 1)), axis=1)[:, : self.kept]
        places = _without_repeats(rng, count, self.top_k, self.kept * share, None)
        return np.take_along_axis(groups, places // share, axis=1) * share + places % share


def _without_repeats(
    rng: np.random.Generator, count: int, top_k: int, experts: int, edges: Floats | None
) -> Picks:
    """``[count, top_k]``: one pick after the other, drawn again while it repeats an earlier one.

    Drawing again is drawing from what is left; rows that keep repeating (a hot expert) are drawn by
    exponential clocks instead, which is the same law.
    """
    drawn = np.empty((count, top_k), np.int64)
    for column in range(top_k):
        todo = np.arange(count)
        for _ in range(MAX_REDRAWS):
            drawn[todo, column] = _draw(rng, len(todo), experts, edges)
            repeats = (drawn[todo, :column] == drawn[todo, column][:, None]).any(1)
            todo = todo[repeats]
            if not len(todo):
                break
        else:
            drawn[todo, column] = _by_clocks(rng, drawn[todo, :column], experts, edges)
    return drawn


def _draw(rng: np.random.Generator, count: int, experts: int, edges: Floats | None) -> Picks:
    if edges is None:
        return rng.integers(0, experts, count)
    found: Picks = np.minimum(np.searchsorted(edges, rng.random(count), "right"), experts - 1)
    return found


def _by_clocks(rng: np.random.Generator, taken: Picks, experts: int, edges: Floats | None) -> Picks:
    """The first expert to ring in each row, those ``taken`` left out."""
    weights = np.diff(edges, prepend=0.0) if edges is not None else np.full(experts, 1 / experts)
    with np.errstate(divide="ignore"):
        clocks = rng.exponential(size=(len(taken), experts)) / weights
    np.put_along_axis(clocks, taken, np.inf, axis=1)
    found: Picks = clocks.argmin(1)
    return found


def _repeats(rng: np.random.Generator, count: int, sticky: float) -> NDArray[np.int64]:
    """Row each token takes its picks from: its own, or that of the token before it."""
    fresh = rng.random(count) >= sticky
    fresh[:1] = True
    found: NDArray[np.int64] = np.maximum.accumulate(np.where(fresh, np.arange(count), 0))
    return found


def popularity_of(kind: str, experts: int, *, skew: float = 1.0) -> Floats | None:
    """Weights ``[experts]`` of a named model; None for ``uniform``.

    ``zipf``: expert r (from 0) weighs (r+1)^-skew. ``hot``: expert 0 weighs ``skew`` times another.

    Raises:
        ConfigError: for an unknown kind or a skew below 0.
    """
    one_of("popularity", kind, ("uniform", "zipf", "hot"))
    if not 0 <= skew < 1e6:
        raise ConfigError("skew", skew, "must be a number from 0", "try 1")
    if kind == "uniform":
        return None
    if kind == "zipf":
        found: Floats = np.arange(1, experts + 1, dtype=np.float64) ** -skew
        return found
    weights = np.ones(experts)
    weights[0] = skew
    return weights

"""Which rank each token of a batch starts on, and its position in its prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.scenario.scenario import Scenario

    Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Runs:
    """A block of tokens as runs of one source.

    ``starts``: ``[runs + 1]``; ``sources``: places in stage 0's list ``[runs]``. ``scattered``: None when
    the block is in runs already, else the source of each token ``[n]``: the runs are those of the block
    grouped by it. All int64.
    """

    starts: Int64s
    sources: Int64s
    scattered: Int64s | None = None


class TokenHomes(Protocol):
    """Homes of a batch's tokens."""

    @property
    def tokens(self) -> int:
        """Tokens in the batch."""

    def runs(self, start: int, stop: int) -> Runs:
        """The runs of a block of tokens."""

    def positions(self, start: int, stop: int) -> Int64s:
        """Position of each token of a block in its prompt ``[stop - start]``."""


@dataclass(frozen=True, slots=True)
class EvenHomes:
    """Tokens split evenly and in order over stage 0's ranks; the first ranks take one more each.

    A token's position is its place in the batch.
    """

    tokens: int
    ranks: int

    def runs(self, start: int, stop: int) -> Runs:
        """The runs of a block: every source is one run at most."""
        edges = self.edges()
        first = int(np.searchsorted(edges, start, "right")) - 1
        last = int(np.searchsorted(edges, stop, "left"))
        starts = np.clip(edges[first : last + 1], start, stop) - start
        return Runs(starts, np.arange(first, last, dtype=np.int64))

    def edges(self) -> Int64s:
        """First token of each rank, and the end ``[ranks + 1]``."""
        share, extra = divmod(self.tokens, self.ranks)
        ranks = np.arange(self.ranks + 1, dtype=np.int64)
        return ranks * share + np.minimum(ranks, extra)

    def positions(self, start: int, stop: int) -> Int64s:
        """Places in the batch."""
        return np.arange(start, stop, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class GivenHomes:
    """An explicit home for each token, in any order.

    ``places``: ``[tokens]`` integers, the home's place in stage 0's ascending list; ``prompt_positions``:
    ``[tokens]``, or None for the place in the batch.
    """

    places: Int64s
    ranks: int
    prompt_positions: Int64s | None = None

    @property
    def tokens(self) -> int:
        """Tokens in the batch."""
        return len(self.places)

    @classmethod
    def of_ranks(cls, scenario: Scenario, sources: NDArray[np.int64]) -> GivenHomes:
        """From the source rank of each token.

        Raises:
            ConfigError: naming the first entry that is not a rank of stage 0.
        """
        mesh = scenario.mesh
        if sources.ndim != 1 or not np.issubdtype(sources.dtype, np.integer):
            got = f"{sources.dtype} {list(sources.shape)}"
            raise ConfigError("sources", got, "must be integers [tokens]", "give one rank a token")
        places = np.full(mesh.world_size, -1, np.int64)
        places[mesh.stage_lists()[0]] = np.arange(mesh.stage_size)
        inside = (sources >= 0) & (sources < mesh.world_size)
        found = np.where(inside, places[np.where(inside, sources, 0)], -1)
        if (found < 0).any():
            token = int(np.argmax(found < 0))
            raise ConfigError(
                f"sources[{token}]",
                int(sources[token]),
                "is not a rank of stage 0, where tokens start",
                f"name one of its {mesh.stage_size} ranks",
            )
        return cls(found, mesh.stage_size)

    @classmethod
    def landed(cls, scenario: Scenario) -> GivenHomes:
        """Every position of every replica's prompt, replica after replica, where it lands."""
        mesh, landing = scenario.mesh, scenario.landing
        prompt = scenario.token.prompt
        homes = np.empty((mesh.dp, prompt), np.int64)
        for position in range(prompt):
            cp, tp = landing.place_of(position)
            for replica in range(mesh.dp):
                homes[replica, position] = mesh.position(mesh.rank(tp=tp, cp=cp, dp=replica, pp=0))
        positions = np.tile(np.arange(prompt, dtype=np.int64), mesh.dp)
        return cls(homes.reshape(-1), mesh.stage_size, positions)

    def runs(self, start: int, stop: int) -> Runs:
        """The runs of a block, or those it has once it is grouped."""
        block = self.places[start:stop]
        changes = block[1:] != block[:-1]
        if np.count_nonzero(changes) <= 2 * self.ranks:
            edges = np.flatnonzero(changes) + 1
            starts = np.concatenate(([0], edges, [len(block)])).astype(np.int64)
            return Runs(starts, block[starts[:-1]].astype(np.int64))
        counts = np.bincount(block, minlength=self.ranks)
        present = np.flatnonzero(counts)
        return Runs(np.concatenate(([0], np.cumsum(counts[present]))), present, block)

    def positions(self, start: int, stop: int) -> Int64s:
        """Positions as given, else places in the batch."""
        if self.prompt_positions is None:
            return np.arange(start, stop, dtype=np.int64)
        return self.prompt_positions[start:stop]

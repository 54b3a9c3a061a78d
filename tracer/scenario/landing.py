"""Where a token lands: positions of a prompt, and new tokens in decode; over CP ranks, then TP ranks.

Zigzag cuts the prompt into 2·cp chunks and gives CP rank r chunks r and 2·cp-1-r, which balances the
causal mask (Llama 3, section 3.3.2); TP ranks then take equal runs of those tokens in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.mesh.grid import IntArray


@dataclass(frozen=True, slots=True)
class Landing:
    """Cutting rule of one prompt over the cp × tp ranks of a replica.

    >>> landing = Landing(prompt=64, cp=2, tp=2)
    >>> landing.place_of(40)
    (1, 1)
    >>> landing.positions_on(1, 1)
    (range(32, 48),)
    """

    prompt: int
    cp: int
    tp: int
    zigzag: bool = True

    @property
    def padded(self) -> int:
        """Prompt length with padding: a multiple of 2·cp·tp, or of tp when cp is 1."""
        unit = self.tp if self.cp == 1 else 2 * self.cp * self.tp
        return -(-self.prompt // unit) * unit

    @property
    def tokens_per_rank(self) -> int:
        """Rows of each rank outside attention, padding included."""
        return self.padded // (self.cp * self.tp)

    @property
    def is_zigzag(self) -> bool:
        """Whether the prompt is cut zigzag; one CP rank has nothing to balance."""
        return self.zigzag and self.cp > 1

    def cp_of(self, positions: IntArray) -> IntArray:
        """CP coordinates of the homes of an array of positions."""
        import numpy as np

        if not self.is_zigzag:
            return positions // (self.padded // self.cp)
        chunks = positions // (self.padded // (2 * self.cp))
        return np.minimum(chunks, 2 * self.cp - 1 - chunks)

    def place_of(self, position: int) -> tuple[int, int]:
        """(cp, tp) coordinates of the home of a position."""
        share = self.padded // self.cp
        if self.is_zigzag:
            chunk, offset = divmod(position, share // 2)
            second = chunk >= self.cp
            cp = 2 * self.cp - 1 - chunk if second else chunk
            local = offset + (share // 2 if second else 0)
        else:
            cp, local = divmod(position, share)
        return cp, local // self.tokens_per_rank

    def positions_on(self, cp: int, tp: int) -> tuple[range, ...]:
        """Runs of positions (padding included) whose home has these coordinates, in their order there."""
        rows = self.tokens_per_rank
        first, last = tp * rows, (tp + 1) * rows
        share = self.padded // self.cp
        if not self.is_zigzag:
            return (range(cp * share + first, cp * share + last),)
        half = share // 2
        runs = []
        for start, chunk in ((0, cp), (half, 2 * self.cp - 1 - cp)):
            low, high = max(first, start), min(last, start + half)
            if low < high:
                runs.append(range(chunk * half + low - start, chunk * half + high - start))
        return tuple(runs)

    def positions_of_share(self, cp: int) -> tuple[range, ...]:
        """Runs of positions (padding included) of a CP rank, all its TP ranks together: its chunks."""
        share = self.padded // self.cp
        if not self.is_zigzag:
            return (range(cp * share, (cp + 1) * share),)
        half = share // 2
        return tuple(range(chunk * half, (chunk + 1) * half) for chunk in (cp, 2 * self.cp - 1 - cp))

    def first_position_on(self, cp: int, tp: int, gpu: int) -> int:
        """First prompt position that lands on a rank, never the last of the prompt.

        Raises:
            ConfigError: when only padding, or the last position, lands there.
        """
        for run in self.positions_on(cp, tp):
            for position in run[:2]:
                if position < self.prompt - 1:
                    return position
        raise ConfigError(
            "token.gpu",
            gpu,
            f"gets no position of the prompt of {self.prompt} but padding or its last one",
            f"try a longer prompt (a multiple of {2 * self.cp * self.tp}), or give token.position",
        )


@dataclass(frozen=True, slots=True)
class DecodeLanding:
    """Cutting rule of the tokens that a replica decodes in one step.

    A request's new token T+i has its home, and keeps its K/V, on CP rank ``(first_cp + i) mod cp``
    (round-robin, Meta's context-parallel inference, arXiv 2411.01783). The ``batch`` tokens that a CP rank
    decodes together are padded to a multiple of tp and cut in equal runs, TP rank 0 first.

    >>> landing = DecodeLanding(prompt=64, cp=2, tp=2, first_cp=1, batch=2)
    >>> landing.place_of(64, slot=1), landing.place_of(65, slot=1)
    ((1, 1), (0, 1))
    """

    prompt: int
    cp: int
    tp: int
    first_cp: int
    batch: int

    @property
    def padded(self) -> int:
        """Rows of a CP rank's batch with padding: a multiple of tp."""
        return -(-self.batch // self.tp) * self.tp

    @property
    def rows_per_rank(self) -> int:
        """Rows of each rank outside attention, padding included."""
        return self.padded // self.tp

    def cp_of(self, position: int) -> int:
        """CP coordinate of a new token's home."""
        return (self.first_cp + position - self.prompt) % self.cp

    def place_of(self, position: int, slot: int) -> tuple[int, int]:
        """(cp, tp) coordinates of the home of a new token in a slot of the batch."""
        return self.cp_of(position), slot // self.rows_per_rank

    def first_position_on(self, cp: int) -> int:
        """First new position whose home is on a CP rank."""
        return self.prompt + (cp - self.first_cp) % self.cp

    def first_slot_on(self, tp: int, gpu: int) -> int:
        """First slot of the batch on a TP rank.

        Raises:
            ConfigError: when only padding lands there.
        """
        slot = tp * self.rows_per_rank
        if slot >= self.batch:
            raise ConfigError(
                "token.gpu",
                gpu,
                f"gets only padding of a batch of {self.batch} over tp {self.tp}",
                f"try token.batch = {slot + 1} or more",
            )
        return slot

"""Where each prompt position lands: cut over CP ranks, then over TP ranks.

Zigzag cuts the prompt into 2·cp chunks and gives CP rank r chunks r and 2·cp-1-r, which balances the
causal mask (Llama 3, section 3.3.2); TP ranks then take equal runs of those tokens in order.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracer.errors import ConfigError


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

"""From which prompt, batch or fabric on weights should move instead of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.timing.batch import TimedBatch
from tracer.timing.weights.layer import contest

if TYPE_CHECKING:
    from tracer.mesh.cluster import Link
    from tracer.timing.weights.group import MoeGroup

MAX_PROMPT = 1 << 22
MAX_SEQUENCES = 1 << 16


@dataclass(frozen=True, slots=True)
class Crossover:
    """Shortest prompt at which DWDP is no slower, for a batch and a fabric; None when there is none."""

    sequences: int
    bytes_per_s: float
    prompt: int | None


def crossover_prompt(group: MoeGroup, sequences: int = 1) -> int | None:
    """Shortest prompt (whole prompts of one length) from which DWDP is no slower; None below 4 M tokens.

    Raises:
        ConfigError: for a batch below 1.
    """
    return _first(lambda length: _wins(group, TimedBatch.prompts(length, sequences)), MAX_PROMPT)


def crossover_sequences(group: MoeGroup, prompt: int) -> int | None:
    """Fewest prompts of a length in one pass from which DWDP is no slower; None up to 65,536.

    Raises:
        ConfigError: for a prompt below 1.
    """
    return _first(lambda count: _wins(group, TimedBatch.prompts(prompt, count)), MAX_SEQUENCES)


def crossover_table(
    group: MoeGroup, sequences: Iterable[int], fabrics: Iterable[Link]
) -> tuple[Crossover, ...]:
    """The crossover for every batch on every fabric."""
    links = list(fabrics)
    return tuple(
        Crossover(count, link.bytes_per_s, crossover_prompt(group.on(link), count))
        for count in sequences
        for link in links
    )


def _wins(group: MoeGroup, batch: TimedBatch) -> bool:
    return contest(group, batch).speedup >= 1


def _first(wins: Callable[[int], bool], limit: int) -> int | None:
    """Smallest number that wins: doubling until one does, then bisection between the last two."""
    high = 1
    while not wins(high):
        if high >= limit:
            return None
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return high

"""A closed loop of requests through a context stage and a generation stage: throughput and first token.

``requests`` are always in flight: one that ends is followed by a new one. Each waits for its prefill and then
spends ``generation_seconds`` in generation, whose speed a user is given. By Little's law
``requests = X · (TTFT + generation)``, and X is at most what the context stage can do (the asymptotic bounds
of closed systems, Denning and Buzen 1978): when it can keep up, a request waits for the pass in progress,
half of it on average, and for its own; when it cannot, X is its capacity and the rest of the loop is queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracer.errors import ConfigError, finite_number, whole_number

_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class ContextStage:
    """``ranks`` data-parallel GPUs that prefill; ``pass_seconds``: passes of 1, 2, … prompts per rank."""

    ranks: int
    pass_seconds: Sequence[float]

    def __post_init__(self) -> None:
        whole_number("context.ranks", self.ranks)
        if not self.pass_seconds:
            raise ConfigError("context.pass_seconds", (), "must not be empty", "give a pass of one prompt")
        for number, seconds in enumerate(self.pass_seconds, 1):
            finite_number(f"context.pass_seconds.{number}", seconds, unit="seconds")

    @property
    def most(self) -> int:
        """Prompts that a rank takes into one pass at most."""
        return len(self.pass_seconds)

    @property
    def capacity(self) -> float:
        """Requests a second of full passes."""
        return self.ranks * self.most / self.pass_seconds[-1]

    def seconds(self, prompts: float) -> float:
        """A pass of so many prompts per rank on average, from 1 to the most; between whole numbers a line."""
        low = min(int(prompts), self.most - 1) if self.most > 1 else 1
        first = self.pass_seconds[low - 1]
        return first if self.most == 1 else first + (prompts - low) * (self.pass_seconds[low] - first)


@dataclass(frozen=True, slots=True)
class Served:
    """What the loop settles at; ``prompts`` is how many a rank takes into a pass."""

    requests_per_s: float
    ttft_seconds: float
    prompts: float
    context_bound: bool


def serve(stage: ContextStage, requests: int, generation_seconds: float) -> Served:
    """The loop at rest: passes take what came in during the pass before, at least one prompt per rank.

    Raises:
        ConfigError: for no request, or a time that is not above 0.
    """
    whole_number("requests", requests)
    finite_number("generation_seconds", generation_seconds, unit="seconds")
    prompts, ttft = 1.0, 0.0
    for _ in range(_ROUNDS):
        seconds = stage.seconds(prompts)
        ttft = 1.5 * seconds
        came = requests / (ttft + generation_seconds) / stage.ranks * seconds
        prompts = (prompts + min(max(1.0, came), float(stage.most))) / 2
    rate = requests / (ttft + generation_seconds)
    if rate <= stage.capacity:
        return Served(rate, ttft, prompts, context_bound=False)
    waits = requests / stage.capacity - generation_seconds
    return Served(stage.capacity, waits, float(stage.most), context_bound=True)

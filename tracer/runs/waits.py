"""What an inquiry into late ranks finds: waits between ranks, and the suspects among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tracer.runs.reading.recording import Group


@dataclass(frozen=True, slots=True)
class Wait:
    """``waiter`` cannot go on before ``culprit`` joins a collective of ``group``, or does a pair's half."""

    waiter: int
    culprit: int
    group: Group
    why: str
    is_pair: bool = False


@dataclass(frozen=True, slots=True)
class Suspect:
    """A rank that looks like a cause, why in words, and how many ranks wait for it in the end."""

    rank: int
    why: str
    rule: int
    waiting: int


@dataclass(slots=True)
class Blame:
    """Suspects, causes first, the wait graph, and what the rules could not decide."""

    suspects: list[Suspect] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def waiting_for(self, rank: int) -> set[int]:
        """Ranks that wait for a rank, directly or through others."""
        return reach(rank, self.waits)


def reach(rank: int, waits: Iterable[Wait]) -> set[int]:
    """Ranks from which a chain of waits leads to a rank."""
    into: dict[int, list[int]] = defaultdict(list)
    for wait in waits:
        into[wait.culprit].append(wait.waiter)
    found: set[int] = set()
    open_ends = [rank]
    while open_ends:
        for waiter in into[open_ends.pop()]:
            if waiter not in found:
                found.add(waiter)
                open_ends.append(waiter)
    return found

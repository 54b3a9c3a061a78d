"""Which EP rank holds which expert: linear, round-robin, or a table of slots with replicas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tracer.errors import ConfigError, divisors, listed, one_of, whole_number

KINDS = ("linear", "round_robin", "table")
REMAINDERS = ("refuse", "first")


@dataclass(frozen=True, slots=True)
class Placement:
    """Expert slots over EP ranks.

    ``linear``: expert e on EP rank ``e // (E/ep)``; ``round_robin``: ``e % ep``; ``table``: ``slots``
    lists the expert in each slot, EP rank r holding slots ``r·(slots/ep)`` onwards, replicas allowed.
    ``remainder="first"`` lets the first ``E % ep`` ranks hold one more (vLLM's rule).

    >>> Placement.linear(10, 4, remainder="first").experts_of(1)
    (3, 4, 5)
    >>> Placement.table([0, 1, 0, 2], ep=2, experts=3).ep_ranks_of(0)
    (0, 1)

    Raises:
        ConfigError: when experts or slots do not divide over the ranks, or a table leaves one out.
    """

    experts: int
    ep: int
    kind: str = "linear"
    remainder: str = "refuse"
    slots: tuple[int, ...] | None = None
    _ranks: dict[int, tuple[int, ...]] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        one_of("placement.kind", self.kind, KINDS)
        one_of("placement.remainder", self.remainder, REMAINDERS)
        whole_number("model.experts", self.experts)
        whole_number("mesh.ep", self.ep)
        if self.kind == "table":
            object.__setattr__(self, "_ranks", self._checked_table())
            return
        if self.slots is not None:
            raise ConfigError(
                "placement.slots",
                "a table",
                f"goes with kind 'table', not {self.kind!r}",
                "try kind = 'table'",
            )
        if self.experts % self.ep and self.remainder == "refuse":
            raise ConfigError(
                "mesh.ep",
                self.ep,
                f"must divide the model's {self.experts} experts",
                f"try {listed(divisors(self.experts))}; or remainder = 'first' (vLLM's rule)",
            )

    @classmethod
    def linear(cls, experts: int, ep: int, remainder: str = "refuse") -> Placement:
        """Runs of consecutive experts, EP rank 0 first."""
        return cls(experts, ep, "linear", remainder)

    @classmethod
    def round_robin(cls, experts: int, ep: int, remainder: str = "refuse") -> Placement:
        """Expert e on EP rank ``e % ep``."""
        return cls(experts, ep, "round_robin", remainder)

    @classmethod
    def table(cls, slots: Sequence[int], ep: int, experts: int) -> Placement:
        """An explicit slot table, replicas allowed."""
        return cls(experts, ep, "table", "refuse", tuple(slots))

    def _checked_table(self) -> dict[int, tuple[int, ...]]:
        slots = self.slots
        if not slots:
            raise ConfigError(
                "placement.slots", slots, "must list the expert of each slot", "give one entry a slot"
            )
        if len(slots) % self.ep:
            up = -(-len(slots) // self.ep) * self.ep
            raise ConfigError(
                "placement.slots",
                f"{len(slots)} slots",
                f"must divide over ep {self.ep} (slots % ep == 0)",
                f"try {up} slots, or ep = {listed(divisors(len(slots)))}",
            )
        found: dict[int, list[int]] = {}
        for slot, expert in enumerate(slots):
            if not 0 <= expert < self.experts:
                raise ConfigError(
                    f"placement.slots[{slot}]",
                    expert,
                    f"must be an expert from 0 to {self.experts - 1}",
                    "mend the entry",
                )
            found.setdefault(expert, []).append(slot // (len(slots) // self.ep))
        if len(found) < self.experts:
            missing = next(expert for expert in range(self.experts) if expert not in found)
            raise ConfigError(
                "placement.slots",
                f"{len(slots)} slots",
                f"must hold every expert; {missing} has none",
                "add it",
            )
        return {expert: tuple(ranks) for expert, ranks in found.items()}

    def ep_ranks_of(self, expert: int) -> tuple[int, ...]:
        """EP ranks that hold an expert, one entry a slot, in slot order."""
        if self._ranks is not None:
            return self._ranks[expert]
        if self.kind == "round_robin":
            return (expert % self.ep,)
        share, extra = divmod(self.experts, self.ep)
        boundary = extra * (share + 1)
        return (expert // (share + 1) if expert < boundary else extra + (expert - boundary) // share,)

    def experts_of(self, ep_rank: int) -> tuple[int, ...]:
        """Experts in an EP rank's slots, in slot order."""
        return tuple(self.experts_on(ep_rank))

    def experts_on(self, ep_rank: int) -> Sequence[int]:
        """The same as a sequence that costs nothing to make, however many experts there are."""
        if self.slots is not None:
            share = len(self.slots) // self.ep
            return self.slots[ep_rank * share : (ep_rank + 1) * share]
        if self.kind == "round_robin":
            return range(ep_rank, self.experts, self.ep)
        share, extra = divmod(self.experts, self.ep)
        start = ep_rank * share + min(ep_rank, extra)
        return range(start, start + share + (ep_rank < extra))

    @property
    def has_replicas(self) -> bool:
        """Whether some expert stands in more than one slot."""
        return self.slots is not None and len(self.slots) > self.experts

    def slots_on(self, ep_rank: int) -> int:
        """Number of expert slots of an EP rank (O(1))."""
        if self.slots is not None:
            return len(self.slots) // self.ep
        share, extra = divmod(self.experts, self.ep)
        return share + (ep_rank < extra)

"""Which EP rank holds which expert: linear, round-robin, or a table of slots with replicas.

Which of several replicas serves a token is decided in ``trip/hops/routes.py``.

Slot tables in a few words: every expert once, and redundant copies beside them or behind them.

``end`` is how vLLM and SGLang start out before any balancing: one list of slots, expert s mod E in slot
s, cut into equal runs (SGLang ``eplb/expert_location.py`` init_trivial; vLLM ``eplb/eplb_state.py``).
``each_rank`` is DeepSeek-V3's prefill unit: every GPU hosts its own experts and a redundant one
(technical report, section 3.4.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tracer.errors import ConfigError, divisors, listed, one_of, whole_number, word_of


class PlacementKind(StrEnum):
    """How experts take their slots."""

    LINEAR = "linear"
    ROUND_ROBIN = "round_robin"
    TABLE = "table"


class Remainder(StrEnum):
    """What happens to experts that do not divide over the EP ranks."""

    REFUSE = "refuse"
    FIRST = "first"


@dataclass(frozen=True, slots=True)
class Placement:
    """Expert slots over EP ranks.

    ``linear``: expert e on EP rank ``e // (E/ep)``; ``round_robin``: ``e % ep``; ``table``: ``slots``
    lists the expert in each slot, EP rank r holding slots ``r·(slots/ep)`` onwards, replicas allowed.
    ``Remainder.FIRST`` lets the first ``E % ep`` ranks hold one more (vLLM's rule).

    >>> Placement.linear(10, 4, remainder=Remainder.FIRST).experts_of(1)
    (3, 4, 5)
    >>> Placement.table([0, 1, 0, 2], ep=2, experts=3).ep_ranks_of(0)
    (0, 1)

    Raises:
        ConfigError: when experts or slots do not divide over the ranks, or a table leaves one out.
    """

    experts: int
    ep: int
    kind: PlacementKind = PlacementKind.LINEAR
    remainder: Remainder = Remainder.REFUSE
    slots: tuple[int, ...] | None = None
    _ranks: dict[int, tuple[int, ...]] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", word_of("placement.kind", self.kind, PlacementKind))
        object.__setattr__(self, "remainder", word_of("placement.remainder", self.remainder, Remainder))
        whole_number("model.experts", self.experts)
        whole_number("mesh.ep", self.ep)
        if self.kind is PlacementKind.TABLE:
            object.__setattr__(self, "_ranks", self._checked_table())
            return
        if self.slots is not None:
            raise ConfigError(
                "placement.slots",
                "a table",
                f"goes with kind 'table', not '{self.kind}'",
                "try kind = 'table'",
            )
        if self.experts % self.ep and self.remainder is Remainder.REFUSE:
            raise ConfigError(
                "mesh.ep",
                self.ep,
                f"must divide the model's {self.experts} experts",
                f"try {listed(divisors(self.experts))}; or remainder = 'first' (vLLM's rule)",
            )

    @classmethod
    def linear(cls, experts: int, ep: int, remainder: Remainder = Remainder.REFUSE) -> Placement:
        """Runs of consecutive experts, EP rank 0 first."""
        return cls(experts, ep, PlacementKind.LINEAR, remainder)

    @classmethod
    def round_robin(cls, experts: int, ep: int, remainder: Remainder = Remainder.REFUSE) -> Placement:
        """Expert e on EP rank ``e % ep``."""
        return cls(experts, ep, PlacementKind.ROUND_ROBIN, remainder)

    @classmethod
    def table(cls, slots: Sequence[int], ep: int, experts: int) -> Placement:
        """An explicit slot table, replicas allowed."""
        return cls(experts, ep, PlacementKind.TABLE, Remainder.REFUSE, tuple(slots))

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
        if self.kind is PlacementKind.ROUND_ROBIN:
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
        if self.kind is PlacementKind.ROUND_ROBIN:
            return range(ep_rank, self.experts, self.ep)
        share, extra = divmod(self.experts, self.ep)
        start = ep_rank * share + min(ep_rank, extra)
        return range(start, start + share + (ep_rank < extra))

    @property
    def has_replicas(self) -> bool:
        """Whether some expert stands in more than one slot."""
        return self.slots is not None and len(self.slots) > self.experts

    def doubled(self) -> tuple[tuple[int, int], ...]:
        """(EP rank, expert) where an expert has two slots or more on one rank, ascending."""
        if self._ranks is None:
            return ()
        return tuple(
            sorted(
                (rank, expert)
                for expert, ranks in self._ranks.items()
                for rank, slots in Counter(ranks).items()
                if slots > 1
            )
        )

    def slots_on(self, ep_rank: int) -> int:
        """Number of expert slots of an EP rank (O(1))."""
        if self.slots is not None:
            return len(self.slots) // self.ep
        share, extra = divmod(self.experts, self.ep)
        return share + (ep_rank < extra)


def doubled_text(placements: Iterable[Placement]) -> tuple[str, ...]:
    """One sentence where slot tables put an expert twice on one GPU, which shares no load; none otherwise.

    >>> doubled_text([Placement.table([0, 0, 1, 2], ep=2, experts=3)])
    ('slot tables put an expert twice on one GPU, which spreads no load: expert 0 on EP rank 0',)
    """
    tables = {id(placement): placement for placement in placements}
    found = sorted({pair for placement in tables.values() for pair in placement.doubled()})
    if not found:
        return ()
    first = ", ".join(f"expert {expert} on EP rank {rank}" for rank, expert in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return (f"slot tables put an expert twice on one GPU, which spreads no load: {first}{more}",)


PLACES = ("end", "each_rank")
MAX_SLOTS = 1 << 20
FIELD = "placement.redundant"


def redundant_slots(experts: int, ep: int, redundant: object, place: object = "end") -> tuple[int, ...]:
    """The expert of each slot, EP rank 0's first.

    ``redundant`` lists the experts that get one more copy, or is a number n for experts 0 to n-1 (taken
    round again above E). ``end`` puts the copies behind all experts; ``each_rank`` gives EP rank r its
    linear share of the experts, then its run of the copies.

    >>> redundant_slots(4, 2, [3, 0], "each_rank")
    (0, 1, 3, 2, 3, 0)
    >>> redundant_slots(4, 3, 2)
    (0, 1, 2, 3, 0, 1)

    Raises:
        ConfigError: for a copy of no expert, or slots that do not divide over the EP ranks.
    """
    one_of("placement.redundant_at", place, PLACES)
    copies = _copies(experts, redundant)
    if place == "end":
        _check_divides(experts + len(copies), experts, ep)
        return (*range(experts), *copies)
    if experts % ep or len(copies) % ep:
        raise ConfigError(
            FIELD,
            f"{len(copies)} copies",
            f"beside {experts} experts must both divide over ep {ep} to give each rank its share",
            f"try ep = {listed(divisors(experts))}, {ep} copies, or redundant_at = 'end'",
        )
    share, extra = experts // ep, len(copies) // ep
    return tuple(
        expert
        for rank in range(ep)
        for expert in (*range(rank * share, (rank + 1) * share), *copies[rank * extra : (rank + 1) * extra])
    )


def _copies(experts: int, redundant: object) -> tuple[int, ...]:
    """The expert of each redundant slot."""
    if isinstance(redundant, list | tuple):
        for place, expert in enumerate(redundant):
            if whole_number(f"{FIELD}[{place}]", expert, at_least=0) >= experts:
                raise ConfigError(
                    f"{FIELD}[{place}]",
                    expert,
                    f"must be an expert from 0 to {experts - 1}",
                    f"try {experts - 1}",
                )
        return tuple(redundant)
    count = whole_number(FIELD, redundant, at_least=0)
    if experts + count > MAX_SLOTS:
        raise ConfigError(FIELD, count, f"makes more than {MAX_SLOTS:,} slots", "take fewer copies")
    return tuple(copy % experts for copy in range(count))


def _check_divides(slots: int, experts: int, ep: int) -> None:
    if slots % ep:
        up = -(-slots // ep) * ep
        raise ConfigError(
            FIELD,
            slots - experts,
            f"makes {slots} slots with the {experts} experts, which must divide over ep {ep}",
            f"try {up - experts} copies, or ep = {listed(divisors(slots))}",
        )

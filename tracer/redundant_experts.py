"""Slot tables in a few words: every expert once, and redundant copies beside them or behind them.

``end`` is how vLLM and SGLang start out before any balancing: one list of slots, expert s mod E in slot
s, cut into equal runs (SGLang ``eplb/expert_location.py`` init_trivial; vLLM ``eplb/eplb_state.py``).
``each_rank`` is DeepSeek-V3's prefill unit: every GPU hosts its own experts and a redundant one
(technical report, section 3.4.1).
"""

from __future__ import annotations

from tracer.errors import ConfigError, divisors, listed, one_of, whole_number

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

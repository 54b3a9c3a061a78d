"""A generation as one trip: prefill, the K/V's way to the decode pool, and one step a new token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, format_seconds, left, right, text_table
from tracer.errors import ConfigError, whole_number
from tracer.scenario.token import Phase
from tracer.serving.kv_handover import KvHandover, kv_handover
from tracer.serving.pools import Pools
from tracer.trip.clock import trip_time
from tracer.trip.trip import Tally, Trip, take_trip

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

MAX_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Leg:
    """One part of a generation: ``prefill``, ``transfer`` or ``decode`` of a position.

    ``seconds`` is link time alone; ``tally`` the totals after the leg and ``since`` the seconds. A transfer's
    bytes and crossings are the followed position's, its seconds those of the whole prompt's K/V, which
    decode waits for.
    """

    name: str
    position: int
    home: int
    seconds: float
    tally: Tally
    since: float
    trip: Trip | None = None
    transfer: KvHandover | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON values; the trip itself is left out."""
        return {
            "name": self.name,
            "position": self.position,
            "home": self.home,
            "seconds": self.seconds,
            "seconds_since_landing": self.since,
            "tally": self.tally._asdict(),
            "transfer": None if self.transfer is None else self.transfer.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Generation:
    """Legs of one request in order; ``print`` shows the running totals.

    The path is that of the tokens which make tokens: T-1 through prefill, whose logits give token T, then
    each new token. ``steps`` decode steps so give ``steps + 1`` tokens.
    """

    prefill: Scenario
    decode: Scenario
    legs: tuple[Leg, ...]

    @property
    def total(self) -> Tally:
        """Totals of the whole generation."""
        return self.legs[-1].tally

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``tracer/data/schemas/generate.schema.json`` describes them."""
        return {
            "schema": 1,
            "prompt": self.prefill.token.prompt,
            "legs": [leg.to_dict() for leg in self.legs],
        }

    def __str__(self) -> str:
        steps = sum(leg.name == "decode" for leg in self.legs)
        title = (
            f"{self.prefill.name or 'scenario'}: prompt of {self.prefill.token.prompt}, {steps} decode "
            f"step{'s' * (steps > 1)}, {steps + 1} tokens"
        )
        lines = [title, *text_table(_COLUMNS, map(_row, self.legs))]
        return "\n".join([*lines, *(_transfer_note(leg.transfer) for leg in self.legs if leg.transfer)])


_WIDTHS = {"position": 8, "home": 7, "GPUs": 6, "crossings": 9, "ops": 6, "bytes": 10, "time": 8, "total": 8}
_COLUMNS = (left("leg", 9, gap=0), *(right(heading, width, gap=1) for heading, width in _WIDTHS.items()))


def _row(leg: Leg) -> tuple[object, ...]:
    tally = leg.tally
    return (
        leg.name,
        leg.position,
        leg.home,
        tally.gpus_touched,
        tally.node_crossings,
        tally.comm_ops,
        format_bytes(tally.bytes),
        format_seconds(leg.seconds),
        format_seconds(leg.since),
    )


def generate(prefill: Scenario, steps: int, decode: Scenario | None = None) -> Generation:
    """The generation of a request: ``decode`` is another pool's scenario, or None for the same ranks.

    Picks given for the scenario's own token are that token's alone; others are drawn from the seed.

    Raises:
        ConfigError: for a number of steps outside 1 to ``MAX_STEPS``, or pools that do not fit each other.
    """
    if whole_number("steps", steps) > MAX_STEPS:
        raise ConfigError("steps", steps, f"is more than the {MAX_STEPS} that one answer holds", "take fewer")
    first = prefill.with_phase(Phase.PREFILL)
    pools = None if decode is None else Pools.join(first, decode)
    second = first.with_phase(Phase.DECODE) if pools is None else pools.decode
    return Generation(first, second, tuple(_legs(first, second, pools, steps)))


def _legs(first: Scenario, second: Scenario, pools: Pools | None, steps: int) -> Iterator[Leg]:
    touched: set[int] = set()
    last = first.token.prompt - 1
    offset = 0 if pools is None else pools.offset
    leg = _after(None, "prefill", take_trip(_following(first, last)), 0, touched)
    yield leg
    if pools is not None:
        leg = _after_transfer(leg, pools, touched)
        yield leg
    for step in range(steps):
        trip = take_trip(_following(second, first.token.prompt + step))
        leg = _after(leg, "decode", trip, offset, touched)
        yield leg


def _following(scenario: Scenario, position: int) -> Scenario:
    """The scenario following another token, whose picks nobody gave."""
    if position == scenario.position:
        return scenario
    return scenario.with_token(position=position).with_(picks=())


def _after(before: Leg | None, name: str, trip: Trip, offset: int, touched: set[int]) -> Leg:
    """The leg of a trip, counted on from the leg before; ``touched`` grows."""
    touched |= {rank + offset for rank in trip.touched}
    seconds = trip_time(trip).seconds
    old = Tally(0, 0, 0, 0) if before is None else before.tally
    log = trip.log
    tally = Tally(
        len(touched),
        old.node_crossings + log.node_crossings,
        old.comm_ops + log.comm_ops,
        old.bytes + log.bytes,
    )
    since = seconds + (0.0 if before is None else before.since)
    home = trip.scenario.home + offset
    return Leg(name, trip.scenario.position, home, seconds, tally, since, trip=trip)


def _after_transfer(before: Leg, pools: Pools, touched: set[int]) -> Leg:
    own, whole = kv_handover(pools, before.position), kv_handover(pools)
    hop = own.hop
    touched |= hop.touched
    old = before.tally
    tally = Tally(len(touched), old.node_crossings + hop.crossings, old.comm_ops + 1, old.bytes + own.bytes)
    home = pools.offset + pools.decode.home
    since = before.since + whole.seconds
    return Leg("transfer", before.position, home, whole.seconds, tally, since, transfer=whole)


def _transfer_note(transfer: KvHandover) -> str:
    return (
        f"note: the transfer counts this position's K/V; the prompt's is {format_bytes(transfer.bytes)} in "
        f"{transfer.crossings:,} crossings, and its time is the whole prompt's: {transfer.assumption}"
    )

"""Two scenarios side by side: hop by hop, axis by axis, bytes and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.compare import compare_trips
from tracer.timing.trip_time import TripTime, trip_time
from tracer.trip import LOG_AXES, TIERS, take_trip

if TYPE_CHECKING:
    from tracer.scenario import Scenario
    from tracer.trip import Trip

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Side:
    """One hop on one side: its bytes, crossings, time and the transfers it makes."""

    index: int
    transfers: int
    bytes: int
    crossings: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class HopPair:
    """The same hop on both sides; None on the side that has no such hop."""

    layer: int
    kind: str
    part: str
    a: Side | None
    b: Side | None

    @property
    def same(self) -> bool:
        """Whether both sides move as much, over as many crossings, in the same time."""
        if self.a is None or self.b is None:
            return False
        return self.a.to_dict() | {"index": 0} == self.b.to_dict() | {"index": 0}


@dataclass(frozen=True, slots=True)
class ScenarioComparison:
    """Two trips and their hops in pairs, in order; ``print`` shows what differs."""

    a: Trip
    b: Trip
    times: tuple[TripTime, TripTime]
    pairs: tuple[HopPair, ...]

    @property
    def totals(self) -> dict[str, tuple[float, float]]:
        """Figures of the two trip logs by name."""
        logs = (self.a.log, self.b.log)
        names = ("gpus_touched", "node_crossings", "comm_ops", "bytes", "weight_bytes")
        found: dict[str, tuple[float, float]] = {n: (getattr(logs[0], n), getattr(logs[1], n)) for n in names}
        for tier in TIERS:
            found[f"bytes over {tier}"] = (logs[0].bytes_by_tier[tier], logs[1].bytes_by_tier[tier])
        found["seconds"] = (self.times[0].seconds, self.times[1].seconds)
        return found

    @property
    def axes(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Crossings, bytes and seconds by axis; pulled weights count in seconds only."""
        sides = [_by_axis(trip, times) for trip, times in zip((self.a, self.b), self.times, strict=True)]
        return {
            axis: {name: (sides[0][axis][name], sides[1][axis][name]) for name in sides[0][axis]}
            for axis in LOG_AXES
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "schema": SCHEMA,
            "a": self.a.scenario.name,
            "b": self.b.scenario.name,
            "seconds_assume": [times.assumption for times in self.times],
            "totals": {name: list(pair) for name, pair in self.totals.items()},
            "axes": {
                axis: {name: list(pair) for name, pair in rows.items()} for axis, rows in self.axes.items()
            },
            "hops": [
                {
                    "layer": pair.layer,
                    "kind": pair.kind,
                    "part": pair.part,
                    "same": pair.same,
                    "a": pair.a and pair.a.to_dict(),
                    "b": pair.b and pair.b.to_dict(),
                }
                for pair in self.pairs
            ],
        }

    def __str__(self) -> str:
        from tracer.timing.compare_text import compare_text

        return compare_text(self)


def compare_scenarios(a: Scenario, b: Scenario) -> ScenarioComparison:
    """Take both trips and pair their hops by layer, kind and part.

    Raises:
        ConfigError: when a scenario lacks what a hop needs.
    """
    trips = (take_trip(a), take_trip(b))
    times = (trip_time(trips[0]), trip_time(trips[1]))
    return ScenarioComparison(*trips, times, tuple(_pairs(trips, times)))


def _pairs(trips: tuple[Trip, Trip], times: tuple[TripTime, TripTime]) -> Iterator[HopPair]:
    sides = [
        iter(
            Side(i, len(hop.transfers), sum(t.bytes for t in hop.transfers), hop.crossings, spent.seconds)
            for i, (hop, spent) in enumerate(zip(trip.hops, clock.hops, strict=True))
        )
        for trip, clock in zip(trips, times, strict=True)
    ]
    for one, other in compare_trips(*trips).hops:
        hop = one or other
        if hop is not None:
            a = None if one is None else next(sides[0])
            b = None if other is None else next(sides[1])
            yield HopPair(hop.layer, str(hop.kind), str(hop.part), a, b)


def _by_axis(trip: Trip, times: TripTime) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {
        axis: {"crossings": 0, "bytes": 0, "seconds": 0.0} for axis in LOG_AXES
    }
    for hop, spent in zip(trip.hops, times.hops, strict=True):
        if hop.axis not in found:
            continue
        row = found[hop.axis]
        row["crossings"] += hop.crossings
        row["bytes"] += sum(t.bytes for t in hop.transfers) if hop.is_comm_op else 0
        row["seconds"] += spent.seconds
    return found

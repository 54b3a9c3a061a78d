"""Two trips beside each other: totals, each axis, and hop by hop, in bytes and in time.

Hops of one layer, part and kind face each other; a hop that one trip lacks faces nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, format_seconds, left, right, text_table
from tracer.scenario.step import mesh_line
from tracer.trip.clock import TripTime, trip_time
from tracer.trip.hop import WEIGHT_KINDS
from tracer.trip.trip import LOG_AXES, TIERS, take_trip

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.trip.hop import Hop
    from tracer.trip.trip import Trip


@dataclass(frozen=True, slots=True)
class AxisTotals:
    """What one axis did in a trip: comm ops, crossings, and bytes by tier."""

    axis: str
    comm_ops: int
    crossings: int
    nvlink_bytes: int
    ib_bytes: int


@dataclass(frozen=True, slots=True)
class TripComparison:
    """Two trips; ``axes`` pairs their totals, ``hops`` their hops (None where one has no counterpart)."""

    a: Trip
    b: Trip
    axes: tuple[tuple[AxisTotals, AxisTotals], ...]
    hops: tuple[tuple[Hop | None, Hop | None], ...]

    @property
    def first_difference(self) -> int | None:
        """Place in ``hops`` of the first pair that differs in what moves, or None."""
        for place, (one, other) in enumerate(self.hops):
            if one is None or other is None or one.transfers != other.transfers:
                return place
        return None


def compare_trips(a: Trip, b: Trip) -> TripComparison:
    """Pair two trips: hops of one layer, part and kind face each other."""
    axes = tuple((axis_totals(a, axis), axis_totals(b, axis)) for axis in LOG_AXES)
    return TripComparison(a, b, axes, tuple(_pairs_of_compare(a.hops, b.hops)))


def axis_totals(trip: Trip, axis: str) -> AxisTotals:
    """Totals of one axis; pulled weights are tallied apart and left out."""
    hops = [hop for hop in trip.filter(axis=axis) if hop.kind not in WEIGHT_KINDS]
    moved = dict.fromkeys(TIERS, 0)
    for hop in hops:
        for transfer in hop.transfers:
            moved[transfer.tier] += transfer.bytes
    crossings = sum(hop.crossings for hop in hops)
    return AxisTotals(axis, sum(hop.is_comm_op for hop in hops), crossings, moved["nvlink"], moved["ib"])


def _pairs_of_compare(a: tuple[Hop, ...], b: tuple[Hop, ...]) -> list[tuple[Hop | None, Hop | None]]:
    matcher = SequenceMatcher(None, [_key(hop) for hop in a], [_key(hop) for hop in b], autojunk=False)
    found: list[tuple[Hop | None, Hop | None]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            found += zip(a[i1:i2], b[j1:j2], strict=True)
        else:
            found += [(hop, None) for hop in a[i1:i2]] + [(None, hop) for hop in b[j1:j2]]
    return found


def _key(hop: Hop) -> tuple[int, str, str]:
    return hop.layer, str(hop.part), str(hop.kind)


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
            Side(i, len(hop.transfers), hop.bytes, hop.crossings, spent.seconds)
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
        row["bytes"] += hop.bytes if hop.is_comm_op else 0
        row["seconds"] += spent.seconds
    return found


_AXIS_COLUMNS = (
    left("axis", 6, gap=0),
    right("crossings", 16, gap=0),
    right("bytes", 26, gap=0),
    right("time", 24, gap=0),
)
_HOP_COLUMNS = (right("layer", 5, gap=0), left("hop", 15), left("A", 36, gap=1), left("B", gap=1))


def compare_text(compared: ScenarioComparison) -> str:
    """The whole comparison, A left and B right."""
    lines = []
    for letter, trip in (("A", compared.a), ("B", compared.b)):
        lines.append(f"{letter}  {trip.scenario.name or 'scenario'}: {mesh_line(trip.scenario)}")
    total_columns = [
        left(width=20, gap=0),
        right("A", 14, gap=0),
        right("B", 14, gap=0),
        right("B / A", 9, gap=0),
    ]
    lines += ["", *text_table(total_columns, [_total(name, *pair) for name, pair in compared.totals.items()])]
    lines += ["", *text_table(_AXIS_COLUMNS, [_axis(axis, rows) for axis, rows in compared.axes.items()])]
    differing = [pair for pair in compared.pairs if not pair.same]
    lines += ["", f"hops: {len(compared.pairs) - len(differing)} alike, {len(differing)} differ"]
    if differing:
        rows = [(pair.layer or "-", pair.kind, _side(pair.a), _side(pair.b)) for pair in differing]
        lines += text_table(_HOP_COLUMNS, rows)
    return "\n".join([*lines, *_assumptions(compared)])


def _total(name: str, a: float, b: float) -> tuple[str, ...]:
    show = format_seconds if name == "seconds" else (lambda value: f"{value:,.0f}")
    return name.replace("_", " "), show(a), show(b), f"{b / a:.3g}" if a else "-"


def _axis(axis: str, rows: dict[str, tuple[float, float]]) -> tuple[str, ...]:
    return (
        axis,
        " → ".join(f"{value:g}" for value in rows["crossings"]),
        " → ".join(map(format_bytes, rows["bytes"])),
        " → ".join(map(format_seconds, rows["seconds"])),
    )


def _side(side: Side | None) -> str:
    if side is None:
        return "no such hop"
    word = "crossings" if side.crossings > 1 else "crossing"
    crossings = f", {side.crossings} {word}" if side.crossings else ""
    return f"{format_bytes(side.bytes)}{crossings}, {format_seconds(side.seconds)}"


def _assumptions(compared: ScenarioComparison) -> list[str]:
    first, second = (times.assumption for times in compared.times)
    return (
        ["", f"times: {first}"] if first == second else ["", f"times of A: {first}", f"times of B: {second}"]
    )

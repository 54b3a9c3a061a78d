"""One token's trip: its hops, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tracer.display import Shown, Writers
from tracer.mesh.cluster import Tier
from tracer.trip.hop import WEIGHT_KINDS, Hop, HopSum, Part
from tracer.trip.hops import SAME_IN_EVERY_LAYER, combine, dispatch
from tracer.trip.itinerary import check_length, itinerary
from tracer.trip.kinds import kind_at

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.trip.hops.routes import Route

SCHEMA = 1
LOG_AXES = ("tp", "cp", "ep", "pp")
TIERS = tuple(str(tier) for tier in Tier)


class Tally(NamedTuple):
    """Running totals after a hop."""

    gpus_touched: int
    node_crossings: int
    comm_ops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TripLog:
    """Totals of a trip, as the counting rules define them.

    ``bytes`` is the sum over transfers of the token's own bytes; ``weight_bytes`` are experts pulled to
    it (DWDP) and pieces of sharded weights gathered for it (FSDP, ZeRO-3), tallied apart in ``weight_ops``
    pulls and gathers.
    """

    gpus_touched: int
    world_size: int
    node_crossings: int
    node_crossings_by_axis: dict[str, int]
    comm_ops: int
    bytes: int
    bytes_by_tier: dict[str, int]
    weight_bytes: int = 0
    weight_ops: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The log as JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Trip(Shown):
    """A token's hops in order, the tally after each, the log, and the GPUs touched, ascending.

    ``print(trip)`` is the trip log; ``tracer/data/schemas/trip.schema.json`` describes its JSON values.
    """

    WRITERS: ClassVar[Writers] = Writers(
        text="tracer.trip.log:trip_text",
        values="tracer.trip.log:trip_to_dict",
        table="tracer.trip.log:trip_table",
        picture="trip",
    )

    scenario: Scenario
    hops: tuple[Hop, ...]
    tallies: tuple[Tally, ...]
    log: TripLog
    touched: tuple[int, ...]

    def filter(
        self, *, axis: str | None = None, layer: int | None = None, tier: str | None = None
    ) -> tuple[Hop, ...]:
        """Hops on an axis, in a layer, with a transfer on a tier; what is not given does not limit."""
        return tuple(
            hop
            for hop in self.hops
            if (axis is None or hop.axis == axis)
            and (layer is None or hop.layer == layer)
            and (tier is None or any(transfer.tier == tier for transfer in hop.transfers))
        )


def iterate_hops(scenario: Scenario) -> Iterator[Hop]:
    """The hops of a scenario's token, one at a time.

    Raises:
        ConfigError: when the scenario lacks what a hop needs.
    """
    made: dict[tuple[object, int, Part, int], Hop] = {}
    routes: dict[int, list[Route]] = {}
    for build, where in itinerary(scenario):
        if build is dispatch:
            routes = {}
            yield dispatch(scenario, where, routes)
            continue
        if build is combine:
            yield combine(scenario, where, routes)
            continue
        if build not in SAME_IN_EVERY_LAYER:
            yield build(scenario, where)
            continue
        # Such a hop moves the same bytes between the same ranks in each layer of a kind in a stage: it is
        # built once. Kinds are compared by identity: equal ones of a spec are one object.
        key = (build, where.home, where.part, id(kind_at(scenario.model, max(1, where.layer))))
        hop = made.get(key)
        if hop is None:
            hop = made[key] = build(scenario, where)
        yield hop if (hop.layer, hop.dead) == (where.layer, where.dead) else hop.at(where)


def take_trip(scenario: Scenario) -> Trip:
    """Follow the scenario's token from landing to its last hop and count.

    Raises:
        ConfigError: when the scenario lacks what a hop needs, or the trip is too long to hold.
    """
    check_length(scenario)
    hops = tuple(iterate_hops(scenario))
    touched: set[int] = set()
    sums: Sums = {}
    tallies = tuple(count_hops(((hop,) for hop in hops), touched, sums))
    return Trip(
        scenario, hops, tallies, log_of_hops(scenario, hops, tallies[-1], sums), tuple(sorted(touched))
    )


Sums = dict[int, HopSum]


def sum_of(hop: Hop, sums: Sums) -> HopSum:
    """The sum of a hop, kept in ``sums``: layers share the transfers of a repeated hop.

    The key is the identity of the transfers, which the hops of a trip keep alive.
    """
    found = sums.get(id(hop.transfers))
    if found is None or not hop.transfers:
        found = sums[id(hop.transfers)] = hop.sum()
    return found


def count_hops(
    steps: Iterable[Iterable[Hop]], touched: set[int], sums: Sums | None = None
) -> Iterator[Tally]:
    """The tally after each step, the hops that tokens take together; ``touched`` is filled on the way."""
    sums = {} if sums is None else sums
    crossings = ops = total = 0
    for step in steps:
        for hop in step:
            found = sum_of(hop, sums)
            touched |= found.touched
            crossings += found.crossings
            if hop.is_comm_op:
                ops += 1
                total += found.bytes
        yield Tally(len(touched), crossings, ops, total)


def log_of_hops(scenario: Scenario, hops: Iterable[Hop], last: Tally, sums: Sums | None = None) -> TripLog:
    """The log of hops that a last tally has counted: what it adds are the sums by axis and by tier."""
    sums = {} if sums is None else sums
    by_axis = dict.fromkeys(LOG_AXES, 0)
    nvlink_bytes = ib_bytes = weight_bytes = weight_ops = 0
    for hop in hops:
        found = sum_of(hop, sums)
        if hop.kind in WEIGHT_KINDS:
            weight_bytes += found.bytes
            weight_ops += 1
            continue
        if hop.axis is not None:
            by_axis[hop.axis] += found.crossings
        nvlink_bytes += found.nvlink_bytes
        ib_bytes += found.ib_bytes
    return TripLog(
        last.gpus_touched,
        scenario.mesh.world_size,
        last.node_crossings,
        by_axis,
        last.comm_ops,
        last.bytes,
        {str(Tier.NVLINK): nvlink_bytes, str(Tier.IB): ib_bytes},
        weight_bytes,
        weight_ops,
    )

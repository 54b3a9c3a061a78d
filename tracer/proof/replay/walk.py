"""Every row's itinerary, walked in lockstep: the only place that says who sends what to whom."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from tracer.trip import hops
from tracer.trip.hop import HopKind, Part, Transfer, Where
from tracer.trip.itinerary import itinerary

if TYPE_CHECKING:
    from tracer.proof.replay.sent import Place
    from tracer.scenario.scenario import Scenario
    from tracer.trip.itinerary import HopBuilder, Rider, Stop

KIND_OF: dict[HopBuilder, HopKind] = {getattr(hops, kind): kind for kind in HopKind if hasattr(hops, kind)}


class Halt(NamedTuple):
    """One row's next stop: the row's number, the kind of hop, its builder, and where it is taken."""

    row: int
    kind: HopKind
    build: HopBuilder
    where: Where


class RowItineraries:
    """The itineraries of a batch's rows; :meth:`take` hands out the next stop of each.

    An itinerary is the engine's own generator, so a hop that it leaves out is never moved, and one that
    replay forgets is left over at the end.
    """

    __slots__ = ("_next", "_plans", "_scenario", "_stops")

    def __init__(self, scenario: Scenario, riders: list[Rider]) -> None:
        self._scenario = scenario
        self._stops: list[Iterator[Stop]] = [itinerary(scenario, rider) for rider in riders]
        self._next: list[Stop | None] = [next(stops, None) for stops in self._stops]
        self._plans: dict[tuple[HopBuilder, int], tuple[Transfer, ...]] = {}

    def take(self, layer: int, part: Part, kinds: Collection[HopKind]) -> list[Halt]:
        """Next stops of the rows for which it is one of ``kinds`` for this part of this layer."""
        taken = []
        for row, stop in enumerate(self._next):
            if stop is None or stop[1].layer != layer or stop[1].part is not part:
                continue
            build, where = stop
            if KIND_OF[build] in kinds:
                taken.append(Halt(row, KIND_OF[build], build, where))
                self._next[row] = next(self._stops[row], None)
        return taken

    def transfers(self, halt: Halt) -> tuple[Transfer, ...]:
        """Transfers of a stop that depends on nothing of its token but the home rank."""
        key = halt.build, halt.where.home
        if key not in self._plans:
            self._plans[key] = halt.build(self._scenario, halt.where).transfers
        return self._plans[key]

    def left_over(self) -> list[tuple[int, Place]]:
        """(row, place) of each row that still has a stop to make."""
        from tracer.proof.replay.sent import Place

        stops = ((row, stop) for row, stop in enumerate(self._next) if stop is not None)
        return [(row, Place(stop[1].layer, stop[1].part, KIND_OF[stop[0]])) for row, stop in stops]

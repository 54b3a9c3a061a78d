"""Hops that several tokens take together: what rides each link, who meets, and the totals of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layouts.scene.labels import tokens as tokens_text
from layouts.scene.marks import trip_marks
from layouts.scene.paths import on_rail
from layouts.scene.phases import is_ring, phases
from layouts.scene.scene import BusyLink, HopScene, Marks, Move, Together, Traveller
from layouts.words.together import ROLES, tell_together
from tracer.errors import ConfigError
from tracer.trip.clock import LinkRates, hop_time, transfer_seconds
from tracer.trip.hop import Transfer

if TYPE_CHECKING:
    from layouts.scene.paths import LinkRouter
    from tracer.trip.several import LinkLoad, SharedTally, Step, Trips

MAX_SHARED = 300_000
Ride = tuple[int, int, str, str, int]


def check_room(trips: Trips) -> None:
    """A map of several tokens has a size.

    Raises:
        ConfigError: when the tokens make more hops and transfers than ``MAX_SHARED`` together.
    """
    count = 0
    for number, trip in enumerate(trips.trips):
        count += sum(1 + len(hop.transfers) for hop in trip.hops)
        if count > MAX_SHARED:
            rule = f"make more than the {MAX_SHARED:,} hops and transfers that one map draws"
            fix = f"draw {number:,} of them or fewer" if number else "draw one token alone"
            raise ConfigError("tokens", f"{len(trips.trips)} tokens", rule, fix)


def travellers(trips: Trips) -> tuple[Traveller, ...]:
    """The tokens, each with the totals of its own trip."""
    return tuple(
        Traveller(
            index,
            trip.scenario.replica,
            trip.scenario.position,
            trip.scenario.home,
            trip.log.gpus_touched,
            trip.log.node_crossings,
            trip.log.comm_ops,
            trip.log.bytes,
        )
        for index, trip in enumerate(trips.trips)
    )


def busy_link(load: LinkLoad | None) -> BusyLink | None:
    """A link's load as the picture names it."""
    return None if load is None else BusyLink(load.src, load.dst, load.tier, load.bytes, load.tokens)


@dataclass(frozen=True, slots=True)
class _Roads:
    """Paths between GPUs, each worked out once for all the steps that take it."""

    router: LinkRouter
    known: dict[tuple[int, int], str]

    def path(self, source: int, destination: int) -> str:
        """As the router draws it, once for each pair."""
        if (source, destination) not in self.known:
            self.known[source, destination] = self.router.path(source, destination)
        return self.known[source, destination]


def shared_hops(trips: Trips, router: LinkRouter) -> Iterator[HopScene]:
    """One scene a step; tokens that do not take it stay as they were."""
    marks = [trip_marks(trip) for trip in trips.trips]
    picks = trips.trips[0].scenario.layer_picks()
    roads = _Roads(router, {})
    now: list[Marks] = [Marks(()) for _ in trips.trips]
    for index, (step, tally) in enumerate(zip(trips.steps, trips.tallies, strict=True)):
        now = [Marks(each.dots) for each in now]
        for token in step.tokens:
            now[token] = next(marks[token])
        yield _shared_hop(index, trips, step, tally, tuple(now), picks, roads)


def _shared_hop(
    index: int,
    trips: Trips,
    step: Step,
    tally: SharedTally,
    marks: tuple[Marks, ...],
    picks: dict[int, tuple[int, ...]],
    roads: _Roads,
) -> HopScene:
    hop = step.hop
    moves = tuple(_moves(trips, step, roads))
    # As `seconds` of a move: what goes over a link in one phase and role is one message.
    joined = tuple(Transfer(m.source, m.destination, m.payload_bytes, m.tier, m.role) for m in moves)
    together = Together(
        step.tokens,
        tuple((meeting.gpu, meeting.tokens) for meeting in step.meetings),
        busy_link(step.busiest),
    )
    return HopScene(
        index=index,
        layer=hop.layer,
        stage=hop.stage,
        kind=str(hop.kind),
        axis=hop.axis,
        part=str(hop.part),
        dead=all(own.dead for _, own in step.hops),
        is_comm_op=hop.is_comm_op,
        crossings=sum(own.crossings for _, own in step.hops),
        moves=moves,
        words=tell_together(trips, step, together, moves, picks.get(hop.layer, ())),
        marks_of=marks,
        gpus_touched=tally.gpus_touched,
        node_crossings=tally.node_crossings,
        comm_ops=None,
        bytes=tally.bytes,
        note="; ".join(dict.fromkeys(own.note for _, own in step.hops if own.note)),
        seconds=hop_time(replace(hop, transfers=joined), LinkRates.of(trips.scenario.cluster)).seconds,
        together=together,
    )


def _moves(trips: Trips, step: Step, roads: _Roads) -> Iterator[Move]:
    """Transfers of all tokens, joined where link, role and phase are the same."""
    cluster = trips.scenario.cluster
    rides: dict[Ride, tuple[list[int], dict[int, None]]] = {}
    for token, hop in step.hops:
        times = phases(hop, ring=is_ring(trips.trips[token].scenario, hop))
        for transfer, phase in zip(hop.transfers, times, strict=True):
            key = (transfer.src, transfer.dst, transfer.tier, transfer.role, phase)
            sizes, tokens = rides.setdefault(key, ([], {}))
            sizes.append(transfer.bytes)
            tokens[token] = None
    for (source, destination, tier, role, phase), (sizes, tokens) in rides.items():
        yield Move(
            source=source,
            destination=destination,
            payload_bytes=sum(sizes),
            seconds=transfer_seconds(cluster.link(tier), sum(sizes)),
            tier=str(tier),
            role=str(role),
            why=f"{ROLES[role]}: {tokens_text(tuple(tokens))}",
            phase=phase,
            on_rail=on_rail(cluster, source, destination, tier),
            path=roads.path(source, destination),
            tokens=tuple(tokens),
        )

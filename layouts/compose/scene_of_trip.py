"""From trips to their scene: the grid of what n >= 1 tokens touch, and each step's moves, marks and words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from layouts.scene.grid import BOX_HEIGHT, TALL_BOX_HEIGHT, build_grid
from layouts.scene.labels import tokens as tokens_text
from layouts.scene.marks import trip_marks
from layouts.scene.paths import LinkRouter, on_rail
from layouts.scene.phases import is_ring, phases
from layouts.scene.rows import build_rows
from layouts.scene.scene import BusyLink, HopScene, Marks, Move, Scene, TokenTotals
from layouts.words.context import Context
from layouts.words.questions import question_about
from layouts.words.reasons import ROLES, reasons
from layouts.words.tell import tell_step
from tracer.errors import ConfigError
from tracer.mesh.cluster import Tier
from tracer.scenario.step import mesh_line
from tracer.trip.clock import LinkRates, hop_time, transfer_seconds
from tracer.trip.hop import WEIGHT_KINDS, Role, Transfer
from tracer.trip.hops.moves import row_bytes
from tracer.trip.log import totals_line
from tracer.trip.trips import Trips

if TYPE_CHECKING:
    from tracer.trip.hop import Hop
    from tracer.trip.link_loads import LinkLoad
    from tracer.trip.trip import Tally, Trip
    from tracer.trip.trips import Step

MAX_DRAWN = 10_000
"""Hops and transfers of one token that a picture draws."""
MAX_DRAWN_OF_ALL = 300_000
"""Hops and transfers of all tokens that one map draws."""


def build_scene(trips: Trip | Trips, *, all_lines: bool = False) -> Scene:
    """Everything to draw of one token's trip, or of several tokens' trips on one map.

    A hop of the scene is one that tokens take together. The cost follows the GPUs touched (and, in nodes
    touched, their neighbours), not the mesh's size. ``all_lines`` draws untouched rows too, up to
    ``layouts.scene.grid.MAX_LINES``.

    Raises:
        ConfigError: for a trip of more than ``MAX_DRAWN`` hops and transfers, or when the tokens make more
            than ``MAX_DRAWN_OF_ALL``.
    """
    trips = Trips.of(trips)
    _check_drawable(trips)
    first = trips.trips[0].scenario
    ranks = {rank for trip in trips.trips for rank in _ranks_of(trip)}
    height = TALL_BOX_HEIGHT if trips.multi_token else BOX_HEIGHT
    grid = build_grid(first, ranks, all_lines=all_lines, box_height=height)
    return Scene(
        name=first.name or "scenario",
        subtitle=mesh_line(first),
        summary=totals_line(trips),
        source=first.source or "",
        width=grid.width,
        height=grid.height,
        bands=grid.bands,
        lines=grid.lines,
        folds=grid.folds,
        rails=grid.rails,
        hops=tuple(_hops(trips, _Roads(LinkRouter.of(grid, first.home), LinkRates.of(first.cluster)))),
        home=first.home,
        world_size=first.mesh.world_size,
        domain_word=first.cluster.domain_word,
        crossings_by_axis=tuple(trips.log.node_crossings_by_axis.items()),
        touched=trips.touched,
        replicas=first.mesh.dp,
        tokens=_token_totals(trips),
        busiest=_busy_link(trips.busiest) if trips.multi_token else None,
        rows=build_rows(first, ranks, every=all_lines),
        row_bytes=row_bytes(first),
    )


def _check_drawable(trips: Trips) -> None:
    total = 0
    for number, trip in enumerate(trips.trips):
        drawn = len(trip.hops) + sum(len(hop.transfers) for hop in trip.hops)
        if drawn > MAX_DRAWN:
            raise ConfigError(
                "scenario",
                trip.scenario.name,
                f"makes {drawn:,} hops and transfers; a picture holds {MAX_DRAWN:,}",
                "take fewer layers, or a smaller tp, cp or ep; tokentrip trip prints longer trips",
            )
        total += drawn
        if total > MAX_DRAWN_OF_ALL:
            rule = f"make more than the {MAX_DRAWN_OF_ALL:,} hops and transfers that one map draws"
            fix = f"draw {number:,} of them or fewer" if number else "draw one token alone"
            raise ConfigError("tokens", f"{len(trips.trips)} tokens", rule, fix)


def _ranks_of(trip: Trip) -> set[int]:
    """Ranks to draw: the touched ones, and the owners of pulled weights."""
    found = set(trip.touched)
    for hop in trip.hops:
        if hop.kind in WEIGHT_KINDS:
            found.update(transfer.src for transfer in hop.transfers)
    return found


def _token_totals(trips: Trips) -> tuple[TokenTotals, ...]:
    """The tokens, each with the totals of its own trip."""
    return tuple(
        TokenTotals(
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


def _busy_link(load: LinkLoad | None) -> BusyLink | None:
    """A link's load as the picture names it."""
    return None if load is None else BusyLink(load.src, load.dst, load.tier, load.bytes, load.tokens)


@dataclass(frozen=True, slots=True)
class _Roads:
    """Paths between GPUs, each worked out once for all the steps that take it, and the rates of links."""

    router: LinkRouter
    rates: LinkRates
    known: dict[tuple[int, int], str] = field(default_factory=dict)

    def path(self, source: int, destination: int) -> str:
        """As the router draws it, once for each pair."""
        if (source, destination) not in self.known:
            self.known[source, destination] = self.router.path(source, destination)
        return self.known[source, destination]


def _hops(trips: Trips, roads: _Roads) -> Iterator[HopScene]:
    """One scene per step; tokens that do not take it stay as they were."""
    marks = [trip_marks(trip) for trip in trips.trips]
    picks: dict[int, dict[int, tuple[int, ...]]] = {}
    now: list[Marks] = [Marks(()) for _ in trips.trips]
    for index, (step, tally) in enumerate(zip(trips.steps, trips.tallies, strict=True)):
        now = [Marks(each.dots) for each in now]
        for token in step.tokens:
            now[token] = next(marks[token])
        first = step.tokens[0]
        if first not in picks:
            picks[first] = trips.trips[first].scenario.layer_picks()
        context = Context(trips.trips[first].scenario, step.hop, picks[first].get(step.hop.layer, ()))
        yield _hop_scene(index, trips, step, tally, tuple(now), context, roads)


def _hop_scene(
    index: int,
    trips: Trips,
    step: Step,
    tally: Tally,
    marks: tuple[Marks, ...],
    context: Context,
    roads: _Roads,
) -> HopScene:
    """The scene of a step; ``context`` is that of its first token."""
    hop, several = step.hop, trips.multi_token
    moves = tuple(_moves(trips, step, context, roads))
    meetings = tuple((meeting.gpu, meeting.tokens) for meeting in step.meetings)
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
        tokens=step.tokens,
        meetings=meetings,
        busiest=_busy_link(step.busiest) if several else None,
        moves=moves,
        words=tell_step(trips, step, meetings, moves, context),
        marks_of=marks,
        gpus_touched=tally.gpus_touched,
        node_crossings=tally.node_crossings,
        comm_ops=None if several else tally.comm_ops,
        bytes=tally.bytes,
        note="; ".join(dict.fromkeys(own.note for _, own in step.hops if own.note)),
        seconds=hop_time(_sent(hop, moves) if several else hop, roads.rates).seconds,
        question=None if several else question_about(context),
    )


def _sent(hop: Hop, moves: tuple[Move, ...]) -> Hop:
    """A hop with the moves of several tokens as its transfers: each is one message, as its time says."""
    joined = (Transfer(m.source, m.destination, m.payload_bytes, Tier(m.tier), Role(m.role)) for m in moves)
    return replace(hop, transfers=tuple(joined))


def _moves(trips: Trips, step: Step, context: Context, roads: _Roads) -> Iterator[Move]:
    """What goes over each link: one token's transfers, each with its reason.

    Several tokens' transfers become one move where link, role and phase are the same.
    """
    cluster = trips.scenario.cluster
    why = [] if trips.multi_token else reasons(context)
    found: dict[tuple[int, int, Tier, Role, int, int], tuple[list[int], dict[int, None]]] = {}
    for token, hop in step.hops:
        times = phases(hop, ring=is_ring(trips.trips[token].scenario, hop))
        for number, (transfer, phase) in enumerate(zip(hop.transfers, times, strict=True)):
            apart = -1 if trips.multi_token else number
            key = (transfer.src, transfer.dst, transfer.tier, transfer.role, phase, apart)
            sizes, tokens = found.setdefault(key, ([], {}))
            sizes.append(transfer.bytes)
            tokens[token] = None
    for (source, destination, tier, role, phase, apart), (sizes, tokens) in found.items():
        yield Move(
            source=source,
            destination=destination,
            payload_bytes=sum(sizes),
            seconds=transfer_seconds(cluster.link(tier), sum(sizes)),
            tier=str(tier),
            role=str(role),
            why=f"{ROLES[role]}: {tokens_text(tuple(tokens))}" if trips.multi_token else why[apart],
            phase=phase,
            on_rail=on_rail(cluster, source, destination, tier),
            path=roads.path(source, destination),
            tokens=tuple(tokens),
        )

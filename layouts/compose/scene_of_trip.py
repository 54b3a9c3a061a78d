"""From a trip to its scene."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from layouts.compose.together import busy_link, check_room, shared_hops, travellers
from layouts.scene.grid import TALL_BOX_HEIGHT, Grid, build_grid
from layouts.scene.marks import trip_marks
from layouts.scene.paths import LinkRouter, on_rail
from layouts.scene.phases import is_ring, phases
from layouts.scene.scene import HopScene, Move, Scene
from layouts.words import tell
from layouts.words.context import Context
from layouts.words.questions import question_about
from layouts.words.reasons import reasons
from tracer.errors import ConfigError
from tracer.scenario.step import mesh_line
from tracer.trip.clock import LinkRates, hop_time, transfer_seconds
from tracer.trip.hop import HopKind
from tracer.trip.log import log_line
from tracer.trip.several import Trips
from tracer.trip.several_text import totals_line

if TYPE_CHECKING:
    from layouts.scene.scene import Marks
    from tracer.trip.trip import Tally, Trip

MAX_DRAWN = 10_000


def build_scene(journey: Trip | Trips, *, all_lines: bool = False) -> Scene:
    """Everything to draw of a trip: the grid of what it touched, and each hop's moves, marks and words.

    Of several tokens' trips, all on one map: a hop is then one that tokens take together. The cost follows
    the GPUs touched (and, in nodes touched, their neighbours), not the mesh's size.
    ``all_lines`` draws untouched rows too, up to ``layouts.scene.grid.MAX_LINES``.

    Raises:
        ConfigError: for a trip of more than ``MAX_DRAWN`` hops and transfers, or when several tokens make
            more transfers than one map draws.
    """
    if isinstance(journey, Trips) and len(journey.trips) > 1:
        return _scene_of_several(journey, all_lines)
    trip = journey.trips[0] if isinstance(journey, Trips) else journey
    _check_drawable(trip)
    grid = build_grid(trip.scenario, _ranks_of(trip), all_lines=all_lines)
    by_axis = trip.log.node_crossings_by_axis
    line = log_line(trip.log, trip.scenario.cluster.domain_word)
    return _scene(trip, grid, tuple(_hops(trip, grid)), line, by_axis)


def _scene_of_several(trips: Trips, all_lines: bool) -> Scene:
    """The same of several tokens; boxes are taller, to hold their numbers."""
    for trip in trips.trips:
        _check_drawable(trip)
    check_room(trips)
    first = trips.trips[0]
    ranks = {rank for trip in trips.trips for rank in _ranks_of(trip)}
    grid = build_grid(first.scenario, ranks, all_lines=all_lines, box_height=TALL_BOX_HEIGHT)
    by_axis = {
        axis: sum(trip.log.node_crossings_by_axis[axis] for trip in trips.trips)
        for axis in first.log.node_crossings_by_axis
    }
    hops = tuple(shared_hops(trips, LinkRouter.of(grid, first.scenario.home)))
    scene = _scene(first, grid, hops, totals_line(trips), by_axis)
    busiest = busy_link(next(iter(trips.links), None))
    return replace(scene, touched=trips.touched, tokens=travellers(trips), busiest=busiest)


def _scene(
    trip: Trip, grid: Grid, hops: tuple[HopScene, ...], summary: str, crossings_by_axis: dict[str, int]
) -> Scene:
    scenario = trip.scenario
    return Scene(
        name=scenario.name or "scenario",
        subtitle=mesh_line(scenario),
        summary=summary,
        source=scenario.source or "",
        width=grid.width,
        height=grid.height,
        bands=grid.bands,
        lines=grid.lines,
        folds=grid.folds,
        rails=grid.rails,
        hops=hops,
        home=scenario.home,
        world_size=scenario.mesh.world_size,
        domain_word=scenario.cluster.domain_word,
        crossings_by_axis=tuple(crossings_by_axis.items()),
        touched=trip.touched,
        replicas=scenario.mesh.size_of("dp"),
    )


def _check_drawable(trip: Trip) -> None:
    drawn = len(trip.hops) + sum(len(hop.transfers) for hop in trip.hops)
    if drawn > MAX_DRAWN:
        raise ConfigError(
            "scenario",
            trip.scenario.name,
            f"makes {drawn:,} hops and transfers; a picture holds {MAX_DRAWN:,}",
            "take fewer layers, or a smaller tp, cp or ep; tokentrip trip prints longer trips",
        )


def _ranks_of(trip: Trip) -> set[int]:
    """Ranks to draw: the touched ones, and the owners of pulled weights."""
    found = set(trip.touched)
    for hop in trip.hops:
        if hop.kind is HopKind.WEIGHT_PULL:
            found.update(transfer.src for transfer in hop.transfers)
    return found


def _hops(trip: Trip, grid: Grid) -> Iterator[HopScene]:
    router = LinkRouter.of(grid, trip.scenario.home)
    picks = trip.scenario.layer_picks()
    rows = zip(trip.hops, trip.tallies, trip_marks(trip), strict=True)
    for index, (hop, tally, marks) in enumerate(rows):
        context = Context(trip.scenario, hop, picks.get(hop.layer, ()))
        yield _hop_scene(index, context, tally, marks, router)


def _hop_scene(index: int, context: Context, tally: Tally, marks: Marks, router: LinkRouter) -> HopScene:
    hop = context.hop
    return HopScene(
        index=index,
        layer=hop.layer,
        stage=hop.stage,
        kind=str(hop.kind),
        axis=hop.axis,
        part=str(hop.part),
        dead=hop.dead,
        is_comm_op=hop.is_comm_op,
        crossings=hop.crossings,
        moves=tuple(_moves(context, router)),
        words=tell(context),
        marks_of=(marks,),
        gpus_touched=tally.gpus_touched,
        node_crossings=tally.node_crossings,
        comm_ops=tally.comm_ops,
        bytes=tally.bytes,
        note=hop.note,
        seconds=hop_time(hop, LinkRates.of(context.scenario.cluster)).seconds,
        question=question_about(context),
    )


def _moves(context: Context, router: LinkRouter) -> Iterator[Move]:
    hop, scenario = context.hop, context.scenario
    cluster = scenario.cluster
    rows = zip(hop.transfers, reasons(context), phases(hop, ring=is_ring(scenario, hop)), strict=True)
    for transfer, why, phase in rows:
        yield Move(
            source=transfer.src,
            destination=transfer.dst,
            payload_bytes=transfer.bytes,
            seconds=transfer_seconds(cluster.link(transfer.tier), transfer.bytes),
            tier=str(transfer.tier),
            role=str(transfer.role),
            why=why,
            phase=phase,
            on_rail=on_rail(cluster, transfer.src, transfer.dst, transfer.tier),
            path=router.path(transfer.src, transfer.dst),
        )

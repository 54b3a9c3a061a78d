"""From a trip to its scene."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from layouts.grid import Grid, build_grid
from layouts.marks import trip_marks
from layouts.paths import Router
from layouts.questions import question_about
from layouts.scene import HopScene, Move, Scene
from layouts.words import tell
from layouts.words.context import Context
from layouts.words.reasons import reasons
from tracer.errors import ConfigError
from tracer.hop import HopKind, Role
from tracer.timing.links import LinkRates, hop_time, transfer_seconds
from tracer.trip_text import log_line, mesh_line

if TYPE_CHECKING:
    from layouts.scene import Marks
    from tracer.hop import Hop
    from tracer.scenario import Scenario
    from tracer.trip import Tally, Trip

MAX_DRAWN = 10_000


def build_scene(trip: Trip, *, all_lines: bool = False) -> Scene:
    """Everything to draw of a trip: the grid of what it touched, and each hop's moves, marks and words.

    The cost follows the GPUs touched (and, in nodes touched, their neighbours), not the mesh's size.
    ``all_lines`` draws untouched rows too, up to ``layouts.grid.MAX_LINES``.

    Raises:
        ConfigError: for a trip of more than ``MAX_DRAWN`` hops and transfers.
    """
    scenario = trip.scenario
    _check_drawable(trip)
    grid = build_grid(scenario, _ranks_of(trip), all_lines=all_lines)
    return Scene(
        name=scenario.name or "scenario",
        subtitle=mesh_line(scenario),
        summary=log_line(trip.log, scenario.cluster.island_word),
        source=scenario.source or "",
        width=grid.width,
        height=grid.height,
        bands=grid.bands,
        lines=grid.lines,
        folds=grid.folds,
        rails=grid.rails,
        hops=tuple(_hops(trip, grid)),
        home=scenario.home,
        world_size=scenario.mesh.world_size,
        island_word=scenario.cluster.island_word,
        crossings_by_axis=tuple(trip.log.node_crossings_by_axis.items()),
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
    router = Router.of(grid, trip.scenario.home)
    picks = trip.scenario.layer_picks()
    rows = zip(trip.hops, trip.tallies, trip_marks(trip), strict=True)
    for index, (hop, tally, marks) in enumerate(rows):
        context = Context(trip.scenario, hop, picks.get(hop.layer, ()))
        yield _hop_scene(index, context, tally, marks, router)


def _hop_scene(index: int, context: Context, tally: Tally, marks: Marks, router: Router) -> HopScene:
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
        marks=marks,
        gpus_touched=tally.gpus_touched,
        node_crossings=tally.node_crossings,
        comm_ops=tally.comm_ops,
        bytes=tally.bytes,
        note=hop.note,
        seconds=hop_time(hop, LinkRates.of(context.scenario.cluster)).seconds,
        question=question_about(context),
    )


def _moves(context: Context, router: Router) -> Iterator[Move]:
    hop, scenario = context.hop, context.scenario
    cluster = scenario.cluster
    rows = zip(hop.transfers, reasons(context), phases(hop, ring=_is_ring(scenario, hop)), strict=True)
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
            on_rail=transfer.tier != "ib"
            or cluster.island_index(transfer.src) == cluster.island_index(transfer.dst),
            path=router.path(transfer.src, transfer.dst),
        )


def _is_ring(scenario: Scenario, hop: Hop) -> bool:
    if hop.kind is HopKind.KV_EXCHANGE:
        return scenario.plan.kv_exchange == "ring"
    return hop.axis == "tp" and scenario.plan.tp_algo == "ring"


def phases(hop: Hop, *, ring: bool) -> list[int]:
    """When each transfer of a hop starts, in steps: a relay forwards after it received, a ring hands on."""
    if ring:
        return _ring_phases(hop)
    second = {Role.FORWARD, Role.SUM}
    if hop.kind is HopKind.ALL_REDUCE:
        second.add(Role.ROW)
    steps = [1 if transfer.role in second else 0 for transfer in hop.transfers]
    return steps if 0 in steps else [0] * len(steps)


def _ring_phases(hop: Hop) -> list[int]:
    arrived: dict[tuple[int, str], int] = {}
    steps: list[int] = []
    for transfer in hop.transfers:
        step = arrived.get((transfer.src, transfer.role), -1) + 1
        if hop.kind is HopKind.ALL_REDUCE and transfer.role == Role.ROW and step == 0:
            step = max(steps, default=-1) + 1
        arrived[transfer.dst, transfer.role] = step
        steps.append(step)
    return steps

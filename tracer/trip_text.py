"""The trip log as text a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.decode_notes import decode_notes
from tracer.hop import Hop, HopKind
from tracer.routing import describe_draw
from tracer.timing.trip_time import trip_time
from tracer.timing.units import format_seconds

if TYPE_CHECKING:
    from tracer.scenario import Scenario
    from tracer.trip import Trip, TripLog

_MANY = 6


def format_bytes(size: int) -> str:
    """Bytes with a decimal unit.

    >>> format_bytes(8192), format_bytes(1_245_184)
    ('8,192 B', '1.25 MB')
    """
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**4)):
        if size >= scale:
            return f"{size / (1000 if unit == 'kB' else scale):.3g} {unit}"
    return f"{size:,} B"


def mesh_line(scenario: Scenario) -> str:
    """The mesh in one line: sizes above 1, experts, order, what is run."""
    mesh, plan = scenario.mesh, scenario.plan
    dense = " ".join(
        f"{axis}{mesh.size_of(axis)}" for axis in ("tp", "cp", "dp", "pp") if mesh.size_of(axis) > 1
    )
    expert = " ".join(
        f"{axis}{mesh.size_of(axis)}" for axis in ("etp", "ep", "edp") if mesh.size_of(axis) > 1
    )
    order = "-".join(mesh.dense.names)
    parts = [f"{mesh.world_size:,} GPUs", dense or "one rank", expert, f"order {order}", f"SP {plan.sp}"]
    if scenario.model is not None and scenario.model.moe_layers:
        parts.append(f"MoE contract {plan.contract}")
    return " · ".join(part for part in parts if part)


def log_line(log: TripLog, island_word: str = "node") -> str:
    """The totals in one line.

    Crossings are named by the axes that made them.
    """
    axes = ", ".join(f"{count} {axis}" for axis, count in log.node_crossings_by_axis.items() if count)
    crossings = f"{log.node_crossings} {island_word} crossings" + (f" ({axes})" if axes else "")
    pulled = f" · {format_bytes(log.weight_bytes)} of weights pulled" if log.weight_bytes else ""
    return (
        f"{log.gpus_touched}/{log.world_size:,} GPUs · {crossings} · {log.comm_ops} comm ops · "
        f"{format_bytes(log.bytes)}{pulled}"
    )


def _moves(hop: Hop) -> str:
    """From → to of a hop's transfers, IB ones marked ``⇒``; long hops are cut."""
    if not hop.transfers:
        return "GPU " + ", ".join(map(str, hop.held)) if hop.held else "nothing of this token moves"
    shown = [f"{t.src}{'⇒' if t.tier == 'ib' else '→'}{t.dst}" for t in hop.transfers[:_MANY]]
    more = len(hop.transfers) - _MANY
    return " ".join(shown) + (f" … {more} more" if more > 0 else "")


def _token_words(scenario: Scenario) -> str:
    if scenario.decodes:
        return f"new token {scenario.position} after a prompt of {scenario.token.prompt}"
    return f"token {scenario.position} of {scenario.token.prompt}"


def _notes(scenario: Scenario) -> list[str]:
    notes = []
    model = scenario.need_model()
    missing = model.moe_layers - len(scenario.picks)
    if missing > 0:
        notes.append(f"picks of {missing} MoE layers {describe_draw(model, scenario.seed)}")
    if scenario.always_picked and model.moe_layers:
        shared = ", ".join(map(str, scenario.always_picked))
        notes.append(f"shared experts are routed: expert {shared} is in every pick")
    layers = scenario.stage_layers
    if len(set(layers)) > 1:
        notes.append(f"layers split unevenly over stages: {', '.join(map(str, layers))}")
    padding = scenario.landing.padded - scenario.token.prompt
    if scenario.decodes:
        notes += decode_notes(scenario)
    elif padding:
        notes.append(f"prompt padded by {padding} rows to {scenario.landing.padded}")
    empty = scenario.cluster.gpus_per_node * (scenario.cluster.nodes or 0) - scenario.mesh.world_size
    if empty > 0:
        notes.append(f"{empty} GPUs of the cluster hold no rank")
    return notes


def trip_text(trip: Trip) -> str:
    """The whole log: header, one line a hop with the tally after it, notes, totals."""
    scenario = trip.scenario
    word = scenario.cluster.island_word
    lines = [
        f"{scenario.name or 'scenario'}: {_token_words(scenario)}, "
        f"replica {scenario.replica}, lands on GPU {scenario.home}",
        mesh_line(scenario),
        "",
        f"{'layer':>5}  {'hop':<15} {'GPUs':>5} {word + ' crossings':>14} {'ops':>4}  {'bytes':>10}  "
        f"{'time':>8} {'total':>8}  "
        "from → to (⇒ over IB)",
    ]
    times = trip_time(trip)
    clock = zip(times.hops, times.cumulative_seconds, strict=True)
    for hop, tally, (spent, since) in zip(trip.hops, trip.tallies, clock, strict=True):
        moved = sum(t.bytes for t in hop.transfers)
        dead = "  (dead work)" if hop.dead else ""
        note = f"  [{hop.note}]" if hop.note else ""
        apart = " apart" if hop.kind is HopKind.WEIGHT_PULL else ""
        lines.append(
            f"{hop.layer or '-':>5}  {hop.kind:<15} {tally.gpus_touched:>5} {tally.node_crossings:>14} "
            f"{tally.comm_ops:>4}  {format_bytes(moved) + apart:>10}  "
            f"{format_seconds(spent.seconds):>8} {format_seconds(since):>8}  {_moves(hop)}{dead}{note}"
        )
    notes = [*_notes(scenario), f"times: {times.assumption}"]
    lines += ["", *(f"note: {note}" for note in notes), "Trip log: " + log_line(trip.log, word)]
    return "\n".join(lines)

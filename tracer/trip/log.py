"""The trip log as text a person reads.

What the log of a decode trip adds: the rule that chose, the K/V that others move, the batch's padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.display import format_bytes, format_seconds
from tracer.memory.kv import kv_tps
from tracer.model.dtype import BYTES
from tracer.scenario.routing import describe_draw
from tracer.scenario.step import mesh_line
from tracer.trip.clock import trip_time
from tracer.trip.hop import Hop, HopKind
from tracer.trip.hops.cp import attention_way, kv_elements, pass_rule

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.trip.trip import Trip, TripLog


def decode_notes(scenario: Scenario) -> list[str]:
    """Lines for the log, none about what the scenario does not have."""
    landing = scenario.decode_landing
    notes = _attention(scenario)
    if scenario.plan.dcp > 1:
        held = ", ".join(map(str, kv_tps(scenario, scenario.position)))
        notes.append(
            f"dcp {scenario.plan.dcp} carved from tp {scenario.mesh.size_of('tp')}: the position's K/V is on "
            f"TP ranks {held}"
        )
    if landing.padded > landing.batch:
        notes.append(f"batch padded by {landing.padded - landing.batch} rows to {landing.padded}")
    return notes


def _attention(scenario: Scenario) -> list[str]:
    """Which of the two travels, by what rule, and what passing K/V costs the rest of the request."""
    if scenario.mesh.size_of("cp") == 1:
        return []
    way, cp = attention_way(scenario), scenario.mesh.size_of("cp")
    notes = []
    if scenario.plan.decode_attention == "auto":
        word = "pass-Q" if way == "pass_q" else "pass-KV"
        sharded = f"dcp = {scenario.plan.dcp} shards every context"
        why = sharded if scenario.plan.dcp > 1 else f"{pass_rule(scenario)} (arXiv 2411.01783)"
        notes.append(f"decode attention is {word}: {why}")
    if way == "pass_kv":
        each = kv_elements(scenario) * BYTES[scenario.dtype.kv] * scenario.mesh.size_of("tp")
        notes.append(
            f"K/V of the {scenario.position:,} positions before this one goes to the other {cp - 1} CP ranks "
            f"too: {each * scenario.position * (cp - 1):,} bytes a layer, not counted here"
        )
    return notes


_MANY = 6


def log_line(log: TripLog, domain_word: str = "node") -> str:
    """The totals in one line.

    Crossings are named by the axes that made them.
    """
    axes = ", ".join(f"{count} {axis}" for axis, count in log.node_crossings_by_axis.items() if count)
    crossings = f"{log.node_crossings} {domain_word} crossings" + (f" ({axes})" if axes else "")
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
    word = scenario.cluster.domain_word
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

"""Decode: what each axis becomes, who keeps the K/V, its hand-over between pools, and who waits for whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from app.query.address import scenario_of
from app.reports.blocks import (
    Block,
    alert,
    chart,
    choice_control,
    counts,
    heading,
    note,
    number_control,
    table,
    text_control,
)
from app.reports.decode.pools import SHOWN, handover_blocks, more_text
from layouts.charts.bars import Series, bars_figure
from tracer.display import format_bytes, short_range
from tracer.errors import ConfigError
from tracer.memory.kv_owners import kv_owners
from tracer.memory.kv_room import KvRoom, kv_room
from tracer.scenario.files import preset_names
from tracer.scenario.step import mesh_line
from tracer.scenario.token import Phase
from tracer.serving.lockstep import lockstep
from tracer.serving.phases import phase_table
from tracer.trip.hops.cp import attention_way
from tracer.trip.trip import take_trip

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

WAYS = {"pass_q": "pass-Q", "pass_kv": "pass-KV"}


def decode_report(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks.

    Raises:
        ConfigError: for what is wrong with the scenario or the decode pool.
    """
    prefill, decode = pool_scenarios(query)
    other = query.get("decode", "")
    return {
        "title": mesh_line(prefill) + (f" → {mesh_line(decode)}" if other else ""),
        "controls": _controls(prefill, other, query),
        "blocks": [
            *_part(lambda: _step(decode)),
            *_part(lambda: _phases(prefill, decode)),
            *_part(lambda: _owners(prefill, decode)),
            *_part(lambda: handover_blocks(prefill, decode)),
            *_part(lambda: _waits(decode, query.get("loads", ""))),
        ],
    }


def pool_scenarios(query: dict[str, str]) -> tuple[Scenario, Scenario]:
    """The page's scenario as a prefill pool, and its decode pool: a preset, or the same mesh.

    Raises:
        ConfigError: for what is wrong with either; an address must not name a file of the server.
    """
    prefill = scenario_of(query).with_phase(Phase.PREFILL)
    other = query.get("decode", "")
    return prefill, (scenario_of({"scenario": other}) if other else prefill).with_phase(Phase.DECODE)


def _part(build: Callable[[], list[Block]]) -> list[Block]:
    """A part of the page, or the reason why it cannot be shown."""
    try:
        return build()
    except ConfigError as error:
        return [alert(error)]


def _controls(prefill: Scenario, other: str, query: dict[str, str]) -> list[Block]:
    pools = [("", "the same mesh"), *((name, name) for name in preset_names())]
    return [
        choice_control("decode", "Decode on", other, pools),
        number_control("token.position", "Position in the prompt", prefill.position),
        text_control("loads", "Load of each replica, joined by commas", query.get("loads", "")),
    ]


def _step(decode: Scenario) -> list[Block]:
    log = take_trip(decode).log
    word = decode.cluster.domain_word
    shards = decode.mesh.cp * decode.plan.dcp
    way = WAYS.get(attention_way(decode), "") if shards > 1 else "at home"
    rows = [
        ("GPUs a new token touches", f"{log.gpus_touched:,} of {log.world_size:,}"),
        (f"{word} crossings", f"{log.node_crossings:,}"),
        ("comm ops", f"{log.comm_ops:,}"),
        ("bytes moved", format_bytes(log.bytes)),
        ("query and K/V meet by" if shards > 1 else "query and K/V meet", way),
    ]
    return [counts("One new token in decode", rows)]


def _phases(prefill: Scenario, decode: Scenario) -> list[Block]:
    rows = [
        [row.axis.upper(), str(row.prefill), str(row.decode)] for row in phase_table(prefill, decode).rows
    ]
    return [
        heading("Prefill and decode, axis by axis"),
        table("Prefill and decode", ["axis", "in prefill", "in decode"], rows, prose=True),
    ]


def _owners(prefill: Scenario, decode: Scenario) -> list[Block]:
    """Who keeps the followed position's K/V, and the room of the request on each GPU of the replica."""
    owners = kv_owners(prefill)
    rows = [
        [
            f"GPU {held.rank}",
            str(held.stage),
            short_range(held.layers),
            short_range(held.heads) or "latent",
            format_bytes(held.bytes_per_layer),
            format_bytes(held.bytes),
        ]
        for held in owners.holdings[:SHOWN]
    ]
    heads = ["GPU", "stage", "layers", "KV heads", "a layer", "in all"]
    times = "once" if owners.copies == 1 else f"{owners.copies:,} times"
    said = f"{owners.elements:,} elements are kept {times}: {format_bytes(owners.bytes)}."
    return [
        heading(f"Who keeps the K/V of position {owners.position:,}"),
        table("K/V owners", heads, rows),
        note(said + more_text(len(owners.holdings))),
        *_room(decode),
    ]


def _room(decode: Scenario) -> list[Block]:
    rooms = kv_room(decode)
    names = [f"GPU {room.rank}" for room in rooms[:SHOWN]]
    series = [Series("K/V of the request", [room.kv_bytes for room in rooms[:SHOWN]], "var(--kv)")]
    rows = [_room_row(room) for room in rooms[:SHOWN]]
    heads = ["GPU", "positions kept", "K/V of the request", "left", "room for positions"]
    height = min(640, 120 + 24 * len(names))
    figure = bars_figure(names, series, "bytes")
    return [
        heading("Room on the GPUs that decode it"),
        chart("K/V of the request on each GPU of its replica", figure, height=height),
        table("Room for K/V", heads, rows),
        note("Left after weights, before activations." + more_text(len(rooms))),
    ]


def _room_row(room: KvRoom) -> list[str]:
    left = "?" if room.left_bytes is None else format_bytes(max(0, room.left_bytes))
    more = "?" if room.positions_left is None else f"{room.positions_left:,}"
    return [f"GPU {room.rank}", f"{room.positions:,}", format_bytes(room.kv_bytes), left, more]


def _waits(decode: Scenario, text: str) -> list[Block]:
    """Replicas in lockstep, once loads are given."""
    replicas = decode.mesh.dp
    if not text:
        hint = f"Give {replicas} loads above, such as {','.join(['1'] * min(3, replicas - 1) + ['4'])}"
        said = [note(f"{hint}{', …' if replicas > 4 else ''}, to see which replica waits for which.")]
        return [heading("Replicas in lockstep"), *said] if replicas > 1 else []
    step = lockstep(decode, _numbers(text))
    names = [f"replica {number}" for number in range(len(step.ends))]
    work = [end - waited for end, waited in zip(step.ends, step.waited, strict=True)]
    series = [Series("works", work, "var(--soft)"), Series("waits", step.waited, "var(--ib)", pattern="/")]
    rows = [
        [name, f"{done:.4g}", f"{waited:.4g}", "runs a dummy batch" if number in step.dummies else ""]
        for number, (name, done, waited) in enumerate(zip(names, work, step.waited, strict=True))
    ]
    figure = bars_figure(names, series, "work, in the unit of the loads")
    sums = [
        ("length of the step", f"{step.length:.4g}"),
        ("of all time is waiting", f"{step.lost_share:.1%}"),
    ]
    return [
        heading("Replicas in lockstep"),
        counts("Lockstep in all", sums),
        chart("Work and waiting of each replica", figure, height=min(640, 120 + 26 * len(names))),
        table("Lockstep", ["replica", "works", "waits", ""], rows),
    ]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        fix = "write 1,2,0,4"
        raise ConfigError("loads", text, "must be numbers joined by commas", fix) from None

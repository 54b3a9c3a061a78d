"""Trips of several tokens as JSON values and as lines a person reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, right, text_table
from tracer.scenario.step import mesh_line
from tracer.trip.several import SCHEMA

if TYPE_CHECKING:
    from tracer.trip.several import Step, Trips

_SHOWN = 24
_BUSIEST = 3


def trips_to_dict(trips: Trips) -> dict[str, Any]:
    """JSON values: tokens with their logs, steps with every token's transfers, and loads of links."""
    return {
        "schema": SCHEMA,
        "scenario": trips.scenario.to_dict(),
        "tokens": [
            {
                "replica": trip.scenario.replica,
                "position": trip.scenario.position,
                "home": trip.scenario.home,
                "touched": list(trip.touched),
                "log": trip.log.to_dict(),
            }
            for trip in trips.trips
        ],
        "touched": list(trips.touched),
        "totals": trips.totals,
        "steps": [_step_to_dict(step) for step in trips.steps],
        "links": [load.to_dict() for load in trips.links],
        "ports": [load.to_dict() for load in trips.ports],
    }


def _step_to_dict(step: Step) -> dict[str, Any]:
    hop = step.hop
    return {
        "layer": hop.layer,
        "stage": hop.stage,
        "kind": str(hop.kind),
        "axis": hop.axis,
        "part": str(hop.part),
        "tokens": list(step.tokens),
        "dead": [token for token, own in step.hops if own.dead],
        "transfers": [
            {
                "token": token,
                "src": t.src,
                "dst": t.dst,
                "bytes": t.bytes,
                "tier": str(t.tier),
                "role": str(t.role),
            }
            for token, own in step.hops
            for t in own.transfers
        ],
        "meetings": [{"gpu": meeting.gpu, "tokens": list(meeting.tokens)} for meeting in step.meetings],
    }


def trips_table(trips: Trips) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Header and rows of what a notebook shows: a row per token."""
    rows: list[tuple[object, ...]] = [
        (index, at.replica, at.position, at.home, log.gpus_touched, log.node_crossings, log.bytes)
        for index, (at, log) in enumerate((trip.scenario, trip.log) for trip in trips.trips)
    ]
    return ("token", "replica", "position", "home", "GPUs touched", "crossings", "bytes"), rows


def trips_text(trips: Trips) -> str:
    """Each token's totals, where they meet, and the busiest links."""
    scenario = trips.scenario
    lines = [
        f"{scenario.name or 'scenario'}: {len(trips.trips)} tokens on one map",
        mesh_line(scenario),
        "",
        *_token_table(trips),
        "",
        f"together: {totals_line(trips)}",
        *_meeting_lines(trips),
        *_busiest_lines(trips),
    ]
    return "\n".join(lines)


def totals_line(trips: Trips) -> str:
    """The totals of all tokens in one line."""
    totals = trips.totals
    tiers = ", ".join(f"{format_bytes(size)} over {tier}" for tier, size in totals["bytes_by_tier"].items())
    return (
        f"{totals['gpus_touched']}/{totals['world_size']:,} GPUs · "
        f"{totals['node_crossings']} {trips.scenario.cluster.domain_word} crossings · {tiers}"
    )


def _token_table(trips: Trips) -> list[str]:
    word = f"{trips.scenario.cluster.domain_word} crossings"
    widths = {"token": 5, "replica": 8, "position": 9, "home": 6, "GPUs": 5, word: 16, "ops": 5, "bytes": 9}
    columns = [
        right(heading, width, gap=int(place > 0)) for place, (heading, width) in enumerate(widths.items())
    ]
    rows = []
    for index, trip in enumerate(trips.trips[:_SHOWN]):
        at, log = trip.scenario, trip.log
        place = (index, at.replica, at.position, at.home)
        rows.append((*place, log.gpus_touched, log.node_crossings, log.comm_ops, format_bytes(log.bytes)))
    lines = text_table(columns, rows)
    more = len(trips.trips) - _SHOWN
    return lines + ([f"      … {more} more"] if more > 0 else [])


def _meeting_lines(trips: Trips) -> list[str]:
    """The first hop in which two tokens meet, and the GPU that most tokens touch."""
    for step in trips.steps:
        if step.meetings:
            first = step.meetings[0]
            where = f"{step.hop.kind} of layer {step.hop.layer}" if step.hop.layer else f"{step.hop.kind}"
            met = f"meet first in {where}: tokens {_few(first.tokens)} on GPU {first.gpu}"
            break
    else:
        met = "never meet: no GPU holds two of them in one hop"
    crowd = max(trips.tokens_by_gpu.items(), key=lambda item: len(item[1]))
    return [met, f"most visited: GPU {crowd[0]}, by tokens {_few(crowd[1])}"]


def _few(tokens: Sequence[int]) -> str:
    more = f" … ({len(tokens)} tokens)" if len(tokens) > _SHOWN else ""
    return ", ".join(map(str, tokens[:_SHOWN])) + more


def _busiest_lines(trips: Trips) -> list[str]:
    lines = []
    for load in trips.links[:_BUSIEST]:
        arrow = "⇒" if load.tier == "ib" else "→"
        moved = f"{format_bytes(load.bytes)} in {load.transfers} transfers"
        lines.append(f"busy link: {load.src}{arrow}{load.dst}, {moved} of tokens {_few(load.tokens)}")
    for port in trips.ports[:1]:
        lines.append(
            f"busiest port: GPU {port.gpu} {port.direction} over {port.tier}, {format_bytes(port.bytes)}: "
            f"{1e6 * port.seconds:.3g} µs at its rate"
        )
    return lines

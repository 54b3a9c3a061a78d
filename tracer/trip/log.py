"""Trip logs for people, as JSON values and as rows for a notebook: of one token, or of several.

In decode the log also says which rule chose what travels, what the earlier K/V costs, and the padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, format_seconds, left, right, text_table
from tracer.memory.kv import kv_tps
from tracer.memory.kv_bytes import sequence_bytes
from tracer.mesh.cluster import Tier
from tracer.model.dtype import BYTES
from tracer.scenario.placement import doubled_text
from tracer.scenario.plan import DecodeAttention
from tracer.scenario.routing import describe_draw
from tracer.scenario.step import mesh_line
from tracer.trip.clock import trip_time
from tracer.trip.hop import WEIGHT_KINDS, Hop
from tracer.trip.hops.cp import attention_way, kv_elements, pass_rule
from tracer.trip.kinds import not_modelled
from tracer.trip.trip import SCHEMA, Tally
from tracer.trip.trips import SCHEMA as TRIPS_SCHEMA

if TYPE_CHECKING:
    from tracer.display import Column
    from tracer.scenario.scenario import Scenario
    from tracer.trip.trip import Trip, TripLog
    from tracer.trip.trips import Step, Trips


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
    if scenario.mesh.cp == 1:
        return []
    way, cp = attention_way(scenario), scenario.mesh.cp
    notes = []
    if scenario.plan.decode_attention is DecodeAttention.AUTO:
        word = "pass-Q" if way is DecodeAttention.PASS_Q else "pass-KV"
        sharded = f"dcp = {scenario.plan.dcp} shards every context"
        why = sharded if scenario.plan.dcp > 1 else f"{pass_rule(scenario)} (arXiv 2411.01783)"
        notes.append(f"decode attention is {word}: {why}")
    if way is DecodeAttention.PASS_KV:
        notes.append(
            f"K/V of the {scenario.position:,} positions before this one goes to the other {cp - 1} CP ranks "
            f"too: {_earlier_kv(scenario) * (cp - 1):,} bytes {_per(scenario)}, not counted here"
        )
    return notes


def _earlier_kv(scenario: Scenario) -> int:
    """Bytes of the K/V before the token on all TP ranks: of a layer, or of all where they are not alike."""
    model, tp = scenario.model, scenario.mesh.tp
    if not model.layer_kinds:
        return kv_elements(scenario) * BYTES[scenario.dtype.kv] * tp * scenario.position
    return sequence_bytes(model, scenario.position, scenario.dtype.kv, tp) * tp


def _per(scenario: Scenario) -> str:
    return "over all layers" if scenario.model.layer_kinds else "per layer"


_MAX_TRANSFERS, _MAX_TOKENS, _MAX_LINKS = 6, 24, 3
_MAX_CHUNKS = 32


def log_line(log: TripLog, domain_word: str = "node", weights: str = "pulled") -> str:
    """The totals in one line.

    Crossings are named by the axes that made them; ``weights`` says how weights come to the token.
    """
    axes = ", ".join(f"{count} {axis}" for axis, count in log.node_crossings_by_axis.items() if count)
    crossings = f"{log.node_crossings} {domain_word} crossings" + (f" ({axes})" if axes else "")
    pulled = f" · {format_bytes(log.weight_bytes)} of weights {weights}" if log.weight_bytes else ""
    return (
        f"{log.gpus_touched}/{log.world_size:,} GPUs · {crossings} · {log.comm_ops} comm ops · "
        f"{format_bytes(log.bytes)}{pulled}"
    )


def totals_line(trips: Trips) -> str:
    """The totals in one line: of one token its log, of several their sums."""
    if trips.multi_token:
        return _sums_line(trips)
    return log_line(trips.trips[0].log, trips.scenario.cluster.domain_word, trips.scenario.plan.weights_word)


def _moves(hop: Hop) -> str:
    """From → to of a hop's transfers, IB ones marked ``⇒``; long hops are cut."""
    if not hop.transfers:
        return "GPU " + ", ".join(map(str, hop.held)) if hop.held else "nothing of this token moves"
    shown = [f"{t.src}{'⇒' if t.tier == 'ib' else '→'}{t.dst}" for t in hop.transfers[:_MAX_TRANSFERS]]
    more = len(hop.transfers) - _MAX_TRANSFERS
    return " ".join(shown) + (f" … {more} more" if more > 0 else "")


def _token_words(scenario: Scenario) -> str:
    text = "" if scenario.token.text is None else f" {scenario.token.text!r}"
    if scenario.decodes:
        return f"new token {scenario.position}{text} after a prompt of {scenario.token.prompt}"
    return f"token {scenario.position}{text} of {scenario.token.prompt}"


def _notes(scenario: Scenario) -> list[str]:
    notes = []
    model = scenario.model
    missing = model.moe_layers - len(scenario.picks)
    if missing > 0:
        notes.append(f"picks of {missing} MoE layers {describe_draw(model, scenario.seed)}")
    if scenario.always_picked and model.moe_layers:
        shared = ", ".join(map(str, scenario.always_picked))
        notes.append(f"shared experts are routed: expert {shared} is in every pick")
    if scenario.placement is not None and model.moe_layers:
        placements = [scenario.placement, *(placement for _, placement in scenario.layer_placements)]
        notes += doubled_text(placements)
    notes += [f"not modelled: {text}" for text in not_modelled(scenario)]
    layers = scenario.stage_layers
    if scenario.plan.chunks > 1:
        sizes = ", ".join(str(len(chunk.layers)) for chunk in scenario.chunks[:_MAX_CHUNKS])
        more = len(scenario.chunks) - _MAX_CHUNKS
        order = scenario.plan.chunk_order.replace("_", " ")
        notes.append(
            f"{scenario.plan.chunks} chunks a stage, {order}: layers of each in turn {sizes}"
            + (f" … {more} more" if more > 0 else "")
        )
    elif len(set(layers)) > 1:
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


def _columns(domain_word: str) -> list[Column]:
    """The columns of the log; the rank to rank moves end the line."""
    return [
        right("layer", 5, gap=0),
        left("hop", 15),
        right("GPUs", 5, gap=1),
        right(f"{domain_word} crossings", 14, gap=1),
        right("ops", 4, gap=1),
        right("bytes", 10),
        right("time", 8),
        right("total", 8, gap=1),
        left("from → to (⇒ over IB)"),
    ]


def trip_text(trip: Trip) -> str:
    """The whole log: header, one line per hop with the tally after it, notes, totals."""
    scenario = trip.scenario
    word = scenario.cluster.domain_word
    times = trip_time(trip)
    clock = zip(times.hops, times.cumulative_seconds, strict=True)
    rows = [
        _row(hop, tally, spent.seconds, since)
        for hop, tally, (spent, since) in zip(trip.hops, trip.tallies, clock, strict=True)
    ]
    notes = [*_notes(scenario), f"times: {times.assumption}"]
    lines = [
        f"{scenario.name or 'scenario'}: {_token_words(scenario)}, "
        f"replica {scenario.replica}, lands on GPU {scenario.home}",
        mesh_line(scenario),
        "",
        *text_table(_columns(word), rows),
        "",
        *(f"note: {note}" for note in notes),
        "Trip log: " + log_line(trip.log, word, scenario.plan.weights_word),
    ]
    return "\n".join(lines)


def _row(hop: Hop, tally: Tally, seconds: float, since: float) -> tuple[object, ...]:
    """The cells of a hop; bytes of pulled weights are marked, for the tally leaves them out."""
    moved = format_bytes(hop.bytes)
    apart = " apart" if hop.kind in WEIGHT_KINDS else ""
    dead = "  (dead work)" if hop.dead else ""
    note = f"  [{hop.note}]" if hop.note else ""
    return (
        hop.layer or "-",
        hop.kind,
        tally.gpus_touched,
        tally.node_crossings,
        tally.comm_ops,
        moved + apart,
        format_seconds(seconds),
        format_seconds(since),
        f"{_moves(hop)}{dead}{note}",
    )


def trip_table(trip: Trip) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Header and rows of what a notebook shows: a row per hop with the tally after it."""
    rows: list[tuple[object, ...]] = [
        (hop.layer or "", hop.kind, t.gpus_touched, t.node_crossings, t.comm_ops, t.bytes)
        for hop, t in zip(trip.hops, trip.tallies, strict=True)
    ]
    return ("layer", "hop", "GPUs touched", "crossings", "comm ops", "bytes"), rows


def trip_to_dict(trip: Trip) -> dict[str, Any]:
    """The trip as JSON values; ``tracer/data/schemas/trip.schema.json`` describes them."""
    scenario, times = trip.scenario, trip_time(trip)
    clock = zip((hop.seconds for hop in times.hops), times.cumulative_seconds, strict=True)
    return {
        "schema": SCHEMA,
        "scenario": scenario.to_dict(),
        "token": {"replica": scenario.replica, "position": scenario.position, "home": scenario.home},
        "touched": list(trip.touched),
        "log": trip.log.to_dict(),
        "seconds": times.seconds,
        "seconds_assume": times.assumption,
        "hops": [
            _hop_to_dict(i, hop, tally) | {"seconds": spent, "seconds_since_landing": since}
            for i, (hop, tally, (spent, since)) in enumerate(zip(trip.hops, trip.tallies, clock, strict=True))
        ],
    }


def _hop_to_dict(index: int, hop: Hop, tally: Tally) -> dict[str, Any]:
    return {
        "index": index,
        "layer": hop.layer,
        "stage": hop.stage,
        "kind": str(hop.kind),
        "axis": hop.axis,
        "part": str(hop.part),
        "dead": hop.dead,
        "transfers": [
            {"src": t.src, "dst": t.dst, "bytes": t.bytes, "tier": str(t.tier), "role": str(t.role)}
            for t in hop.transfers
        ],
        "tally": tally._asdict(),
        "note": hop.note,
    }


def trips_text(trips: Trips) -> str:
    """Each token's totals, where they meet, and the busiest links."""
    scenario = trips.scenario
    lines = [
        f"{scenario.name or 'scenario'}: {len(trips.trips)} tokens on one map",
        mesh_line(scenario),
        "",
        *_token_table(trips),
        "",
        f"together: {_sums_line(trips)}",
        *_meeting_lines(trips),
        *_busiest_lines(trips),
    ]
    return "\n".join(lines)


def _sums_line(trips: Trips) -> str:
    """The totals of all tokens, their bytes by tier: tokens share collectives, so no sum of comm ops."""
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
    for index, trip in enumerate(trips.trips[:_MAX_TOKENS]):
        at, log = trip.scenario, trip.log
        token = (index, at.replica, at.position, at.home)
        rows.append((*token, log.gpus_touched, log.node_crossings, log.comm_ops, format_bytes(log.bytes)))
    lines = text_table(columns, rows)
    more = len(trips.trips) - _MAX_TOKENS
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
    gpu, visitors = max(trips.tokens_by_gpu.items(), key=lambda item: len(item[1]))
    return [met, f"most visited: GPU {gpu}, by tokens {_few(visitors)}"]


def _few(tokens: Sequence[int]) -> str:
    more = f" … ({len(tokens)} tokens)" if len(tokens) > _MAX_TOKENS else ""
    return ", ".join(map(str, tokens[:_MAX_TOKENS])) + more


def _busiest_lines(trips: Trips) -> list[str]:
    lines = []
    for load in trips.links[:_MAX_LINKS]:
        arrow = "⇒" if load.tier == Tier.IB else "→"
        moved = f"{format_bytes(load.bytes)} in {load.transfers} transfers"
        lines.append(f"busy link: {load.src}{arrow}{load.dst}, {moved} of tokens {_few(load.tokens)}")
    for port in trips.ports[:1]:
        lines.append(
            f"busiest port: GPU {port.gpu} {port.direction} over {port.tier}, {format_bytes(port.bytes)}: "
            f"{1e6 * port.seconds:.3g} µs at its rate"
        )
    return lines


def trips_table(trips: Trips) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Header and rows of what a notebook shows: a row per token."""
    rows: list[tuple[object, ...]] = [
        (index, at.replica, at.position, at.home, log.gpus_touched, log.node_crossings, log.bytes)
        for index, (at, log) in enumerate((trip.scenario, trip.log) for trip in trips.trips)
    ]
    return ("token", "replica", "position", "home", "GPUs touched", "crossings", "bytes"), rows


def trips_to_dict(trips: Trips) -> dict[str, Any]:
    """JSON values: tokens with their logs, steps with every token's transfers, and loads of links."""
    return {
        "schema": TRIPS_SCHEMA,
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

"""The scene as JSON values, for the player; long lists are columns of :mod:`layouts.compose.player_rows`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from layouts.compose.multi_token_json import several_hops, several_to_dict
from layouts.compose.player_rows import CounterRow, DotRow, MoveRow, columns
from layouts.scene.labels import time_text
from layouts.scene.scene import Domain, HopScene, Marks, Move, Question, Scene, Seat, Words
from tracer.display import format_bytes, running_sums

SCHEMA = 3


def scene_to_dict(scene: Scene) -> dict[str, Any]:
    """What the player needs: totals, hops with moves, words and marks, and which GPU sits where.

    The player places GPUs and links itself, for its window. A domain's ``seats``, a hop's ``moves`` and its
    marks' ``dots`` are columns.
    """
    since = running_sums(hop.seconds for hop in scene.hops)
    hops = [_hop(hop) | {"since": time_text(total)} for hop, total in zip(scene.hops, since, strict=True)]
    more: dict[str, Any] = {}
    if scene.multi_token:
        more = several_to_dict(scene)
        hops = [hop | extra for hop, extra in zip(hops, several_hops(scene), strict=True)]
    return {
        "schema": SCHEMA,
        "name": scene.name,
        "subtitle": scene.subtitle,
        "summary": scene.summary,
        "source": scene.source,
        "home": scene.home,
        "world_size": scene.world_size,
        "domain_word": scene.domain_word,
        "crossings_by_axis": dict(scene.crossings_by_axis),
        "row_bytes": scene.row_bytes,
        "domain_size": scene.rows.size,
        "stages": list(scene.rows.stages),
        "rows": [_domain(domain) for domain in scene.rows.domains],
        "replicas": scene.replicas,
        "hops": hops,
        **more,
    }


def _domain(domain: Domain) -> dict[str, Any]:
    """Domains that no token touches have no seats."""
    return {
        "first": domain.first,
        "count": domain.count,
        "experts": domain.experts,
        "seats": columns(Seat, domain.seats),
    }


def _hop(hop: HopScene) -> dict[str, Any]:
    return {
        "index": hop.index,
        "layer": hop.layer,
        "stage": hop.stage,
        "kind": hop.kind,
        "axis": hop.axis,
        "part": hop.part,
        "dead": hop.dead,
        "comm": hop.is_comm_op,
        "crossings": hop.crossings,
        "note": hop.note,
        "time": time_text(hop.seconds),
        "moves": columns(MoveRow, [_move(move) for move in hop.moves]),
        "words": _words(hop.words),
        "marks": _marks(hop.marks),
        "question": _question(hop.question),
        "tally": asdict(
            CounterRow(hop.gpus_touched, hop.node_crossings, hop.comm_ops, hop.bytes, format_bytes(hop.bytes))
        ),
    }


def _move(move: Move) -> MoveRow:
    return MoveRow(
        src=move.source,
        dst=move.destination,
        bytes=move.payload_bytes,
        bytes_text=format_bytes(move.payload_bytes),
        seconds=move.seconds,
        time=time_text(move.seconds),
        tier=move.tier,
        role=move.role,
        why=move.why,
        phase=move.phase,
        on_rail=move.on_rail,
    )


def _words(words: Words) -> dict[str, Any]:
    shapes = dict(zip(("before", "after"), words.shapes, strict=True)) if words.shapes else None
    return {
        "title": words.title,
        "stop": words.stop,
        "what": words.what,
        "why": words.why,
        "gotcha": words.gotcha,
        "shapes": shapes,
    }


def _question(question: Question | None) -> dict[str, Any] | None:
    if question is None:
        return None
    return {
        "ask": question.ask,
        "options": list(question.options),
        "answer": question.answer,
        "explain": question.explain,
    }


def _marks(marks: Marks) -> dict[str, Any]:
    return {
        "dots": columns(DotRow, [DotRow(rank, state) for rank, state in marks.dots]),
        "kv_owners": list(marks.kv_owners),
        "kv_copies": list(marks.kv_copies),
        "relays": list(marks.relays),
        "newly_touched": list(marks.newly_touched),
    }

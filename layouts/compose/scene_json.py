"""The scene as JSON values, for the player."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from layouts.compose.crowd_json import several_hops, several_to_dict
from layouts.scene.labels import time_text
from layouts.scene.scene import HopScene, Marks, Move, Question, Scene
from tracer.display import format_bytes

SCHEMA = 1


def scene_to_dict(scene: Scene) -> dict[str, Any]:
    """What the player needs: totals, hops with moves, words and marks, and where GPUs stand.

    Paths are listed once and named by their place in ``paths``; ``boxes`` maps a rank to
    ``[x, y, width, height]``.
    """
    paths: dict[str, int] = {}
    since = accumulate(hop.seconds for hop in scene.hops)
    hops = [
        _hop(hop, paths) | {"since": time_text(total)} for hop, total in zip(scene.hops, since, strict=True)
    ]
    more: dict[str, Any] = {}
    if scene.tokens:
        more = several_to_dict(scene)
        hops = [hop | extra for hop, extra in zip(hops, several_hops(scene), strict=True)]
    return {
        "schema": SCHEMA,
        "name": scene.name,
        "subtitle": scene.subtitle,
        "summary": scene.summary,
        "source": scene.source,
        "size": [scene.width, scene.height],
        "home": scene.home,
        "world_size": scene.world_size,
        "island_word": scene.domain_word,
        "crossings_by_axis": dict(scene.crossings_by_axis),
        "boxes": {
            str(box.rank): [box.x, box.y, box.width, box.height] for line in scene.lines for box in line.gpus
        },
        "folded": bool(scene.folds),
        "replicas": scene.replicas,
        "hops": hops,
        "paths": list(paths),
        **more,
    }


def _hop(hop: HopScene, paths: dict[str, int]) -> dict[str, Any]:
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
        "moves": [_move(move, paths) for move in hop.moves],
        "words": {
            "title": hop.words.title,
            "stop": hop.words.stop,
            "what": hop.words.what,
            "why": hop.words.why,
            "gotcha": hop.words.gotcha,
            "shapes": list(hop.words.shapes) if hop.words.shapes else None,
        },
        "marks": _marks(hop.marks),
        "question": _question(hop.question),
        "tally": [hop.gpus_touched, hop.node_crossings, hop.comm_ops, hop.bytes, format_bytes(hop.bytes)],
    }


def _move(move: Move, paths: dict[str, int]) -> list[Any]:
    """``[from, to, bytes, bytes as text, seconds as text, tier, why, phase, on rail, path]``."""
    path = paths.setdefault(move.path, len(paths)) if move.path else -1
    return [
        move.source,
        move.destination,
        move.payload_bytes,
        format_bytes(move.payload_bytes),
        time_text(move.seconds),
        move.tier,
        move.why,
        move.phase,
        move.on_rail,
        path,
    ]


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
        "dots": [list(dot) for dot in marks.dots],
        "kv": list(marks.kv_owners),
        "copies": list(marks.kv_copies),
        "relays": list(marks.relays),
        "new": list(marks.newly_touched),
    }

"""What a hop adds to the map: links that carry it, marks of tokens and of the K/V they leave behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from layouts.scene.token_tags import landed, tokens_after
from layouts.svg.token_marks import kv_marks, token_marks
from tracer.display import format_bytes
from tracer.mesh.cluster import Tier

if TYPE_CHECKING:
    from layouts.scene.scene import BusyLink, GpuBox, HopScene, Move, Scene
    from layouts.svg.pen import Pen

    Boxes = dict[int, GpuBox]

LINKS = {"nvlink": "NVLink", "ib": "IB"}
MAX_CHIPS = 3
HOP_WIDTH, TRIP_WIDTH, BUSY_WIDTH = 3.0, 2.0, 6.0


def hop_layer(scene: Scene, hop: int, pen: Pen) -> Iterator[str]:
    """Transfers of one hop, and where the tokens and their K/V are after it."""
    boxes, here = scene.gpu_boxes(), scene.hops[hop]
    yield from kv_marks(scene, hop, boxes, pen)
    yield from draw_links(hop_links(scene, here), here.busiest, pen, HOP_WIDTH)
    yield from draw_relays(scene, here, boxes, pen)
    yield from token_marks(scene, tokens_after(here), boxes, pen)
    yield from draw_chips(scene, here, boxes, pen)


def trip_layer(scene: Scene, pen: Pen) -> Iterator[str]:
    """Every link the trip used, once, the K/V it left, and where the tokens landed."""
    boxes = scene.gpu_boxes()
    yield '<g opacity="0.75">'
    yield from draw_links(used_links(scene), scene.busiest, pen, TRIP_WIDTH)
    yield "</g>"
    yield from kv_marks(scene, len(scene.hops) - 1, boxes, pen)
    yield from token_marks(scene, landed(scene), boxes, pen)


def hop_links(scene: Scene, hop: HopScene) -> list[Move]:
    """Moves of a hop to draw: every message of one token, but one per path of several tokens."""
    drawn = [move for move in hop.moves if move.path]
    return list({move.path: move for move in drawn}.values()) if scene.multi_token else drawn


def used_links(scene: Scene) -> list[Move]:
    """One move for each pair of GPUs that the trip joins: dashes there and back would fill each other."""
    links: dict[frozenset[int], Move] = {}
    for hop in scene.hops:
        for move in hop.moves:
            if move.path:
                links.setdefault(frozenset((move.source, move.destination)), move)
    return list(links.values())


def draw_links(moves: Iterable[Move], busiest: BusyLink | None, pen: Pen, width: float) -> Iterator[str]:
    """Paths of moves; the busiest link, if one is to stand out, comes last, heavier and over the others."""
    heavy: list[Move] = []
    for move in moves:
        if busiest is not None and joins(move, busiest):
            heavy.append(move)
        else:
            yield draw_link(move, pen, width)
    for move in heavy:
        yield draw_link(move, pen, BUSY_WIDTH)


def joins(move: Move, link: BusyLink) -> bool:
    """Whether a move goes over a link, either way: pictures draw one path for both."""
    return {move.source, move.destination} == {link.source, link.destination}


def draw_link(move: Move, pen: Pen, width: float = HOP_WIDTH) -> str:
    """The path of a transfer: solid over NVLink, dashed over InfiniBand."""
    dash = "" if move.tier == Tier.NVLINK else ' stroke-dasharray="8 3"'
    return pen.line(move.path, move.tier, width, dash + ' stroke-linecap="round"')


def draw_relays(scene: Scene, hop: HopScene, boxes: Boxes, pen: Pen) -> Iterator[str]:
    """The word "relay" on GPUs that pass a copy on; several tokens' numbers stand in its place."""
    for rank in () if scene.multi_token else hop.marks.relays:
        if rank in boxes:
            yield pen.text(boxes[rank].x + 9, boxes[rank].y + 38, "relay", "ib", 12, weight=600)


def draw_chips(scene: Scene, hop: HopScene, boxes: Boxes, pen: Pen) -> Iterator[str]:
    """Bytes beside the first few links that cross; for several tokens the title names the busiest instead."""
    if scene.multi_token:
        return
    crossing = [move for move in hop.moves if move.tier == Tier.IB and move.path]
    for move in crossing[:MAX_CHIPS]:
        yield _chip(move, hop.kind == "combine", boxes, pen)


def _chip(move: Move, back: bool, boxes: Boxes, pen: Pen) -> str:
    """Bytes next to the remote end of a link: the source of what comes back, else the destination."""
    text = f"{LINKS[move.tier]} · {format_bytes(move.payload_bytes)}"
    a, b = boxes[move.source], boxes[move.destination]
    if back:
        a, b = b, a
    width = 7.2 * len(text) + 16
    x = b.x + b.width / 2 + 12
    y = (b.y + b.height + 14) if a.y > b.y else (b.y - 34)
    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="20" rx="10" {pen.both("page", "ib")}/>'
    return box + pen.text(x + width / 2, y + 14, text, "ib", 12, weight=600, anchor="middle")

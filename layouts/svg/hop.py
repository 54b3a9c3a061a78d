"""What a hop adds to the map: links that carry it, the token's marks, and K/V left behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracer.display import format_bytes

if TYPE_CHECKING:
    from layouts.scene.scene import GpuBox, HopScene, Move, Scene
    from layouts.svg.pen import Pen

LINKS = {"nvlink": "NVLink", "ib": "IB"}
MAX_CHIPS = 3


def hop_layer(scene: Scene, hop: int, pen: Pen) -> Iterator[str]:
    """Transfers of one hop, and where the token and its K/V are after it."""
    boxes, here = scene.gpu_boxes(), scene.hops[hop]
    yield from kv_marks(scene, hop, boxes, pen)
    for move in here.moves:
        if move.path:
            yield draw_link(move, pen)
    for rank in here.marks.relays:
        if rank in boxes:
            yield pen.text(boxes[rank].x + 9, boxes[rank].y + 38, "relay", "ib", 12, weight=600)
    for rank, state in here.marks.dots:
        if rank in boxes:
            yield draw_dot(boxes[rank], state, pen)
    yield from draw_chips(here, boxes, pen)


def trip_layer(scene: Scene, pen: Pen) -> Iterator[str]:
    """Every link the trip used, once, and the K/V it left."""
    boxes = scene.gpu_boxes()
    yield '<g opacity="0.75">'
    for move in used_links(scene):
        yield draw_link(move, pen, width=2)
    yield "</g>"
    yield from kv_marks(scene, len(scene.hops) - 1, boxes, pen)
    if scene.home in boxes:
        yield draw_dot(boxes[scene.home], "home", pen)


def used_links(scene: Scene) -> list[Move]:
    """One move for each pair of GPUs that the trip joins: dashes there and back would fill each other."""
    links: dict[frozenset[int], Move] = {}
    for hop in scene.hops:
        for move in hop.moves:
            if move.path:
                links.setdefault(frozenset((move.source, move.destination)), move)
    return list(links.values())


def kv_marks(scene: Scene, hop: int, boxes: dict[int, GpuBox], pen: Pen) -> Iterator[str]:
    """Squares where the token's K/V is: filled where it stays, outlined where a copy was lent."""
    owners = {rank for each in scene.hops[: hop + 1] for rank in each.marks.kv_owners}
    copies = {rank for each in scene.hops[: hop + 1] for rank in each.marks.kv_copies} - owners
    for rank in sorted(owners | copies):
        if rank in boxes:
            x, y = boxes[rank].x + boxes[rank].width - 20, boxes[rank].y + 8
            look = pen.fill("kv") if rank in owners else f'fill="none" {pen.stroke("kv")} stroke-width="2"'
            yield f'<rect x="{x:g}" y="{y:g}" width="12" height="12" rx="2" {look}/>'


def draw_link(move: Move, pen: Pen, width: float = 3) -> str:
    """The path of a transfer: solid over NVLink, dashed over InfiniBand."""
    dash = "" if move.tier == "nvlink" else ' stroke-dasharray="8 3"'
    return pen.line(move.path, move.tier, width, dash + ' stroke-linecap="round"')


def draw_dot(box: GpuBox, state: str, pen: Pen) -> str:
    """The token on a GPU: large at home, an outline at a relay."""
    x, y = box.x + box.width - 14, box.y + 34
    if state == "relay":
        return f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="none" {pen.stroke("token")} stroke-width="2"/>'
    radius = 8 if state == "home" else 6
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius}" {pen.fill("token")}/>'


def draw_chips(hop: HopScene, boxes: dict[int, GpuBox], pen: Pen) -> Iterator[str]:
    """Bytes beside the first few links that cross, next to the remote end."""
    crossing = [move for move in hop.moves if move.tier == "ib" and move.path][:MAX_CHIPS]
    for move in crossing:
        text = f"{LINKS[move.tier]} · {format_bytes(move.payload_bytes)}"
        a, b = boxes[move.source], boxes[move.destination]
        if hop.kind == "combine":
            a, b = b, a
        width = 7.2 * len(text) + 16
        x = b.x + b.width / 2 + 12
        y = (b.y + b.height + 14) if a.y > b.y else (b.y - 34)
        yield (
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="20" rx="10" {pen.both("page", "ib")}/>'
            + pen.text(x + width / 2, y + 14, text, "ib", 12, weight=600, anchor="middle")
        )

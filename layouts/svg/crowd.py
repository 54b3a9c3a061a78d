"""Several tokens in a picture: numbered dots, whose K/V is kept where, and the busiest link drawn heavier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from layouts.scene.crowds import (
    DOT_HEIGHT,
    DOT_TOP,
    KV_HEIGHT,
    KV_TOP,
    Tag,
    colours_of,
    crowd_tags,
    crowds_after,
    kept_at,
    kept_tags,
)
from layouts.svg.hop import draw_link, used_links

if TYPE_CHECKING:
    from layouts.scene.scene import BusyLink, GpuBox, Move, Scene
    from layouts.svg.pen import Pen

BUSY_WIDTH = 6.0


def several_hop_layer(scene: Scene, hop: int, pen: Pen) -> Iterator[str]:
    """Links of one hop, each drawn once, and where the tokens and their K/V are after it."""
    here = scene.hops[hop]
    busiest = here.together.busiest if here.together else None
    yield from _kept(scene, hop, pen)
    yield from draw_links(here.moves, busiest, pen, 3)
    yield from _crowds(scene, hop, pen)


def several_trip_layer(scene: Scene, pen: Pen) -> Iterator[str]:
    """Every link that a token used, the K/V they left, and where they landed."""
    yield from _kept(scene, len(scene.hops) - 1, pen)
    yield '<g opacity="0.75">'
    yield from draw_links(used_links(scene), scene.busiest, pen, 2)
    yield "</g>"
    yield from _crowds(scene, 0, pen)


def draw_links(moves: Iterable[Move], busiest: BusyLink | None, pen: Pen, width: float) -> Iterator[str]:
    """Paths, each once; the busiest link last, over the others."""
    paths = {move.path: move for move in moves if move.path}
    heavy = [move for move in paths.values() if busiest and joins(move, busiest)]
    for move in paths.values():
        if move not in heavy:
            yield draw_link(move, pen, width)
    for move in heavy:
        yield draw_link(move, pen, BUSY_WIDTH)


def joins(move: Move, link: BusyLink) -> bool:
    """Whether a move goes over a link, either way: pictures draw one path for both."""
    return {move.source, move.destination} == {link.source, link.destination}


def _kept(scene: Scene, hop: int, pen: Pen) -> Iterator[str]:
    boxes = scene.gpu_boxes()
    for rank, (owned, lent) in sorted(kept_at(scene, hop).items()):
        if rank in boxes:
            for tag in kept_tags(owned, lent):
                yield draw_tag(boxes[rank], tag, pen)


def _crowds(scene: Scene, hop: int, pen: Pen) -> Iterator[str]:
    boxes = scene.gpu_boxes()
    for rank, crowd in sorted(crowds_after(scene.hops[hop]).items()):
        if rank in boxes:
            for tag in crowd_tags(crowd):
                yield draw_tag(boxes[rank], tag, pen)


def draw_tag(box: GpuBox, tag: Tag, pen: Pen) -> str:
    """A mark in a GPU's box: a token's dot, a count of tokens, or K/V."""
    kept = tag.look in ("kept", "lent")
    top, height = (KV_TOP, KV_HEIGHT) if kept else (DOT_TOP, DOT_HEIGHT)
    return draw_mark(box.x + tag.x, box.y + top, tag, height, pen)


def draw_mark(x: float, y: float, tag: Tag, height: float, pen: Pen) -> str:
    """A mark with its left upper corner at a place."""
    look, text = _look(tag, pen)
    radius = 2 if tag.look in ("kept", "lent") else height / 2
    words = (
        f'<text x="{x + tag.width / 2:g}" y="{y + height / 2 + 4:g}" font-size="12" font-weight="600" '
        f'text-anchor="middle" {text}>{tag.text}</text>'
    )
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{tag.width:g}" height="{height:g}" rx="{radius:g}" {look}/>{words}'
    )


def _look(tag: Tag, pen: Pen) -> tuple[str, str]:
    """Attributes of the shape and of the words in it."""
    if tag.look == "kept":
        return pen.fill("kv"), pen.fill("page")
    if tag.look == "lent":
        return f'{pen.both("box", "kv")} stroke-width="1.5"', pen.fill("kv")
    if tag.token is None:
        return pen.fill("ink"), pen.fill("page")
    fill, number = colours_of(tag.token)
    if tag.look == "relay":
        return f'{pen.fill("box")} stroke="{fill}" stroke-width="2.5"', pen.fill("ink")
    edge = f' {pen.stroke("ink")} stroke-width="2"' if tag.look == "home" else ""
    return f'fill="{fill}"{edge}', f'fill="{number}"'

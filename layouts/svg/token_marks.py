"""Marks of tokens and of their K/V: a plain dot for one token, numbered marks for several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from layouts.scene.token_tags import (
    DOT_HEIGHT,
    DOT_TOP,
    KV_HEIGHT,
    KV_TOP,
    Standing,
    Tag,
    colours_of,
    kv_at,
    kv_tags,
    token_tags,
)

if TYPE_CHECKING:
    from layouts.scene.scene import GpuBox, Scene
    from layouts.svg.pen import Pen

    Boxes = dict[int, GpuBox]


def kv_marks(scene: Scene, hop: int, boxes: Boxes, pen: Pen) -> Iterator[str]:
    """K/V after a hop: filled where it stays, outlined where a copy was lent."""
    for rank, (owned, lent) in sorted(kv_at(scene, hop).items()):
        if rank in boxes:
            for tag in kv_tags(owned, lent, numbered=scene.multi_token):
                yield draw_tag(boxes[rank], tag, pen)


def token_marks(scene: Scene, standing_on: dict[int, Standing], boxes: Boxes, pen: Pen) -> Iterator[str]:
    """Tokens where they stand."""
    for rank, standing in sorted(standing_on.items()):
        if rank in boxes:
            for tag in token_tags(standing, numbered=scene.multi_token):
                yield draw_tag(boxes[rank], tag, pen)


def draw_tag(box: GpuBox, tag: Tag, pen: Pen) -> str:
    """A mark in a GPU's box: a token's dot, a count of tokens, or K/V."""
    if not tag.text:
        return _plain_kv(box, tag, pen) if tag.is_kv else _plain_dot(box, tag, pen)
    top, height = (KV_TOP, KV_HEIGHT) if tag.is_kv else (DOT_TOP, DOT_HEIGHT)
    return draw_mark(box.x + tag.x, box.y + top, tag, height, pen)


def _plain_dot(box: GpuBox, tag: Tag, pen: Pen) -> str:
    """The only token on a GPU: large at home, an outline at a relay."""
    x, y = box.x + box.width - 14, box.y + 34
    if tag.look == "relay":
        return f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="none" {pen.stroke("token")} stroke-width="2"/>'
    radius = 8 if tag.look == "home" else 6
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius}" {pen.fill("token")}/>'


def _plain_kv(box: GpuBox, tag: Tag, pen: Pen) -> str:
    """The only token's K/V, as a square in the corner."""
    x, y = box.x + box.width - 20, box.y + 8
    look = pen.fill("kv") if tag.look == "kept" else f'fill="none" {pen.stroke("kv")} stroke-width="2"'
    return f'<rect x="{x:g}" y="{y:g}" width="12" height="12" rx="2" {look}/>'


def draw_mark(x: float, y: float, tag: Tag, height: float, pen: Pen) -> str:
    """A numbered mark with its left upper corner at a place."""
    look, text = _look(tag, pen)
    radius = 2 if tag.is_kv else height / 2
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

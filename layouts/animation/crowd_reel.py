"""Several tokens in a picture that plays: their dots and counts at rest, their K/V, and what rides a link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from layouts.animation.clockwork import Span, during
from layouts.scene.crowds import (
    DOT_HEIGHT,
    Crowd,
    Tag,
    crowd_tags,
    crowds_after,
    crowds_while,
    dot_width,
    kept_after,
    kept_tags,
    riders_text,
)
from layouts.svg.crowd import BUSY_WIDTH, draw_mark, draw_tag

if TYPE_CHECKING:
    from layouts.animation.reel import Reel
    from layouts.scene.scene import BusyLink
    from layouts.svg.pen import Pen

Shown = dict[tuple[int, Tag], list[Span]]


def resting_crowds(reel: Reel) -> Iterator[str]:
    """Tokens that stay while a hop travels, and where all are after it."""
    shown: Shown = {}
    for hop, beat in reel.beats():
        before = reel.scene.hops[hop.index - 1] if hop.index else None
        for crowds, span in (
            (crowds_while(hop, before), (beat.start, beat.arrive)),
            (crowds_after(hop), (beat.arrive, beat.end)),
        ):
            for rank, tag in _tags(crowds):
                shown.setdefault((rank, tag), []).append(span)
    yield from _in_time(reel, shown)


def kept_in_time(reel: Reel) -> Iterator[str]:
    """K/V tags, each from the hop that changes it to the one that changes it again, and after the last."""
    arrive = {hop.index: beat.arrive for hop, beat in reel.beats()}
    first, last = reel.hops[0].index, reel.hops[-1].index
    since: dict[int, tuple[float, list[Tag]]] = {}
    shown: Shown = {}
    for index, changes in enumerate(kept_after(reel.scene)):
        if index > last:
            break
        now = arrive[index] if index >= first else 0.0
        for rank, kept in changes.items():
            start, old = since.get(rank, (now, []))
            for tag in old:
                if now > start:
                    shown.setdefault((rank, tag), []).append((start, now))
            since[rank] = (now, kept_tags(*kept))
    for rank, (start, tags) in since.items():
        for tag in tags:
            shown.setdefault((rank, tag), []).append((start, reel.clock.total))
    yield from _in_time(reel, shown)


def whole_crowds(reel: Reel) -> Iterator[str]:
    """Where the tokens landed, for the picture of the whole trip."""
    for rank, tag in _tags(crowds_after(reel.scene.hops[0])):
        if rank in reel.boxes:
            yield draw_tag(reel.boxes[rank], tag, reel.pen)


def heavy_link(reel: Reel, link: BusyLink | None) -> str:
    """The path of the busiest link once more, heavier."""
    if link is None:
        return ""
    ends = {link.source, link.destination}
    paths = (
        move.path for hop in reel.scene.hops for move in hop.moves if {move.source, move.destination} == ends
    )
    path = next((path for path in paths if path), "")
    return f'<use href="#{reel.links[path]}" stroke-width="{BUSY_WIDTH:g}"/>' if path else ""


def rider(tokens: tuple[int, ...], square: str, pen: Pen) -> str:
    """What rides a link: a token's dot, a count of them, or their K/V or weights."""
    text = riders_text(tokens)
    width = dot_width(text)
    look = "kept" if square == "kv" else "count" if square or len(tokens) > 1 else "copy"
    tag = Tag(0, width, text, look, tokens[0] if look == "copy" else None)
    return draw_mark(-width / 2, -DOT_HEIGHT / 2, tag, DOT_HEIGHT, pen)


def _tags(crowds: dict[int, Crowd]) -> Iterable[tuple[int, Tag]]:
    return ((rank, tag) for rank, crowd in crowds.items() for tag in crowd_tags(crowd))


def _in_time(reel: Reel, shown: Shown) -> Iterator[str]:
    for (rank, tag), spans in shown.items():
        if rank in reel.boxes:
            yield f'<g display="none">{draw_tag(reel.boxes[rank], tag, reel.pen)}{during(spans)}</g>'

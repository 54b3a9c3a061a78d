"""Tokens and their K/V in a picture that plays: at rest, kept from one hop on, and travelling over a link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layouts.animation.clockwork import Beat, Clockwork, Span, during
from layouts.scene.token_tags import (
    DOT_HEIGHT,
    Standing,
    Tag,
    carried_text,
    dot_width,
    kv_after,
    kv_tags,
    token_tags,
    tokens_after,
    tokens_during,
)
from layouts.svg.hop import BUSY_WIDTH, joins
from layouts.svg.pen import Pen
from layouts.svg.token_marks import draw_mark, draw_tag

if TYPE_CHECKING:
    from layouts.scene.scene import BusyLink, GpuBox, HopScene, Scene

Shown = dict[tuple[int, Tag], list[Span]]
"""When each tag of a GPU is shown."""


@dataclass(frozen=True, slots=True)
class Reel:
    """What plays: hops in order with their beats, and what the map knows; ``links`` names each path."""

    scene: Scene
    hops: tuple[HopScene, ...]
    clock: Clockwork
    boxes: dict[int, GpuBox]
    pen: Pen
    links: dict[str, str]

    def beats(self) -> Iterator[tuple[HopScene, Beat]]:
        """Each hop with its beat."""
        return zip(self.hops, self.clock.beats, strict=True)

    def past(self) -> tuple[HopScene, ...]:
        """Hops before the first one that plays."""
        return self.scene.hops[: self.hops[0].index]


def resting_tokens(reel: Reel) -> Iterator[str]:
    """Tokens that stay while a hop travels, and where all are after it."""
    shown: Shown = {}
    for hop, beat in reel.beats():
        before = reel.scene.hops[hop.index - 1] if hop.index else None
        for standing_on, span in (
            (tokens_during(hop, before), (beat.start, beat.arrive)),
            (tokens_after(hop), (beat.arrive, beat.end)),
        ):
            for rank, tag in _tags(reel, standing_on):
                shown.setdefault((rank, tag), []).append(span)
    for (rank, tag), spans in shown.items():
        if rank in reel.boxes:
            yield _hidden(draw_tag(reel.boxes[rank], tag, reel.pen), during(spans), plain=not tag.text)


def kv_in_time(reel: Reel) -> Iterator[str]:
    """K/V tags, each from the hop that changes it to the one that changes it again, and after the last."""
    shown = _kv_spans(reel)
    # What stays comes first, then lent copies by rank: the order in which pictures have always had them.
    for (rank, tag), spans in sorted(shown.items(), key=lambda each: _kv_order(*each[0])):
        if rank not in reel.boxes:
            continue
        drawn = draw_tag(reel.boxes[rank], tag, reel.pen)
        if tag.text:
            yield _hidden(drawn, during(spans), plain=False)
        else:
            start = spans[0][0]
            before = during([(0.0, start)], "none") if start else ""
            yield f"{drawn.removesuffix('/>')}>{before}</rect>"


def _kv_order(rank: int, tag: Tag) -> tuple[bool, int]:
    lent = tag.look == "lent"
    return lent, rank if lent else 0


def _kv_spans(reel: Reel) -> Shown:
    arrive = {hop.index: beat.arrive for hop, beat in reel.beats()}
    first, last = reel.hops[0].index, reel.hops[-1].index
    since: dict[int, tuple[float, list[Tag]]] = {}
    shown: Shown = {}
    for index, changes in enumerate(kv_after(reel.scene)):
        if index > last:
            break
        now = arrive[index] if index >= first else 0.0
        for rank, kept in changes.items():
            start, old = since.get(rank, (now, []))
            for tag in old:
                if now > start:
                    shown.setdefault((rank, tag), []).append((start, now))
            since[rank] = (now, kv_tags(*kept, numbered=reel.scene.multi_token))
    for rank, (start, tags) in since.items():
        for tag in tags:
            shown.setdefault((rank, tag), []).append((start, reel.clock.total))
    return shown


def _hidden(drawn: str, when: str, *, plain: bool) -> str:
    """A mark that is shown in its spans only; a plain dot is one circle, other marks are groups."""
    if plain:
        return f'{drawn.removesuffix("/>")} display="none">{when}</circle>'
    return f'<g display="none">{drawn}{when}</g>'


def _tags(reel: Reel, standing_on: dict[int, Standing]) -> Iterable[tuple[int, Tag]]:
    numbered = reel.scene.multi_token
    for rank, standing in standing_on.items():
        for tag in token_tags(standing, numbered=numbered):
            yield rank, tag


def heavy_link(reel: Reel, link: BusyLink | None) -> str:
    """The path of the busiest link once more, heavier, if one is to stand out."""
    if link is None:
        return ""
    moves = (move for hop in reel.scene.hops for move in hop.moves if joins(move, link))
    path = next((move.path for move in moves if move.path), "")
    return f'<use href="#{reel.links[path]}" stroke-width="{BUSY_WIDTH:g}"/>' if path else ""


def numbered_mark(tokens: tuple[int, ...], square: str, pen: Pen) -> str:
    """What several tokens send over a link: a token's dot, a count of them, or their K/V or weights."""
    text = carried_text(tokens)
    width = dot_width(text)
    look = "kept" if square == "kv" else "count" if square or len(tokens) > 1 else "copy"
    tag = Tag(0, width, text, look, tokens[0] if look == "copy" else None)
    return draw_mark(-width / 2, -DOT_HEIGHT / 2, tag, DOT_HEIGHT, pen)

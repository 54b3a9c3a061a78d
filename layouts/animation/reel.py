"""TODO

The token at rest in an animated picture: dots where it stands, squares where its K/V stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layouts.animation.clockwork import Beat, Clockwork, Span, during
from layouts.svg.hop import draw_dot
from layouts.svg.pen import Pen

if TYPE_CHECKING:
    from layouts.scene.scene import GpuBox, HopScene, Scene


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


def resting_dots(reel: Reel) -> Iterator[str]:
    """Dots that stay while a hop travels, and those where the token is after it."""
    spans: dict[tuple[int, str], list[Span]] = {}
    for hop, beat in reel.beats():
        staying = {rank for rank, _ in hop.marks.dots}
        leaving = {move.source for move in hop.moves} - staying
        before = reel.scene.hops[hop.index - 1].marks.dots if hop.index else ()
        for mark in before:
            if mark[0] not in leaving:
                spans.setdefault(mark, []).append((beat.start, beat.arrive))
        for mark in hop.marks.dots:
            spans.setdefault(mark, []).append((beat.arrive, beat.end))
    for (rank, state), times in spans.items():
        if rank in reel.boxes:
            dot = draw_dot(reel.boxes[rank], state, reel.pen)
            yield f'{dot.removesuffix("/>")} display="none">{during(times)}</circle>'


def kv_squares(reel: Reel) -> Iterator[str]:
    """The K/V, from the hop that leaves it on; a copy only where none of its own ever is."""
    owners: dict[int, float] = {}
    copies: dict[int, float] = {}
    for hop, when in [
        *((hop, 0.0) for hop in reel.past()),
        *((hop, beat.arrive) for hop, beat in reel.beats()),
    ]:
        for rank in hop.marks.kv_owners:
            owners.setdefault(rank, when)
        for rank in hop.marks.kv_copies:
            copies.setdefault(rank, when)
    for rank, start in owners.items():
        yield _square(reel, rank, start, reel.pen.fill("kv"))
    for rank in sorted(copies.keys() - owners.keys()):
        yield _square(reel, rank, copies[rank], f'fill="none" {reel.pen.stroke("kv")} stroke-width="2"')


def _square(reel: Reel, rank: int, start: float, look: str) -> str:
    box = reel.boxes.get(rank)
    if box is None:
        return ""
    before = during([(0.0, start)], "none") if start else ""
    return (
        f'<rect x="{box.x + box.width - 20:g}" y="{box.y + 8:g}" width="12" height="12" rx="2" {look}>'
        f"{before}</rect>"
    )

"""TODO"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layouts.clockwork import Beat, Clockwork
from layouts.draw import Pen

if TYPE_CHECKING:
    from layouts.scene import GpuBox, HopScene, Scene


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

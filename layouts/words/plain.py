"""What can be said of any hop from its transfers alone; kinds with more to say have a teller of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import gpus
from layouts.scene.scene import Words
from tracer.display import format_bytes
from tracer.trip.hop import Part

if TYPE_CHECKING:
    from layouts.words.context import Context

_STOPS = {
    Part.LAND: "Landing",
    Part.EMBEDDING: "Landing",
    Part.ATTENTION: "Attention",
    Part.FFN: "Feed-forward",
    Part.SHARED: "Feed-forward",
    Part.MOE: "Experts",
    Part.PIPELINE: "Pipeline",
    Part.HEAD: "Leaving",
    Part.TRANSFER: "Leaving",
}


def plain_hop(context: Context) -> Words:
    """The kind's label, and who sends how much to whom."""
    hop = context.hop
    sources = sorted({transfer.src for transfer in hop.transfers})
    targets = sorted({transfer.dst for transfer in hop.transfers})
    what = "Nothing of this token moves."
    if targets:
        verb = "sends" if len(sources) == 1 else "send"
        what = f"{gpus(sources)} {verb} {format_bytes(hop.bytes)} in all to {gpus(targets)}."
    return Words(hop.kind.label, stop_of(hop.part), what, "")


def stop_of(part: Part) -> str:
    """Which of the six stops of a trip a part of the model belongs to."""
    return _STOPS[part]

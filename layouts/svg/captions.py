"""The words above a picture: what it shows, and the counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import link_text, plural
from tracer.display import format_bytes

if TYPE_CHECKING:
    from layouts.scene.scene import HopScene, Scene


def trip_title(scene: Scene) -> str:
    """Title of a picture of the whole trip."""
    how_many = f" · {plural(len(scene.tokens), 'token')}" if scene.multi_token else ""
    return f"{scene.name}{how_many} · the whole trip"


def hop_title(hop: HopScene) -> str:
    """A hop's layer and name."""
    return (f"layer {hop.layer} · " if hop.layer else "") + hop.words.title


def counters(scene: Scene, hop: HopScene) -> str:
    """Running totals after a hop; several tokens share collectives, so their comm ops are not summed."""
    last = f"{format_bytes(hop.bytes)}" if hop.comm_ops is None else f"{hop.comm_ops} comm ops"
    return (
        f"{hop.gpus_touched} of {scene.world_size:,} GPUs · {hop.node_crossings} {scene.domain_word} "
        f"crossings · {last}"
    )


def busiest_line(scene: Scene, hop: HopScene | None) -> str:
    """The busiest link of a hop, or of the whole trip; empty when nothing moves, or for one token."""
    link = hop.busiest if hop else scene.busiest
    if link is None:
        return ""
    return f"busiest link {'of this hop' if hop else 'of the trip'}: {link_text(link)}"

"""What a trip can be written as, by the ending of the file."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, nearest

if TYPE_CHECKING:
    from tracer.trip import Trip

Writer = Callable[["Trip", int | None], str | bytes]


def _text(target: str) -> Writer:
    """A writer that ignores the hop: ``module:function`` of one trip, imported when it is called."""

    def write(trip: Trip, hop: int | None) -> str:
        module, function = target.split(":")
        content: str = getattr(import_module(module), function)(trip)
        return content

    return write


def _svg(trip: Trip, hop: int | None) -> str:
    from layouts import build_scene, render_svg

    return render_svg(build_scene(trip), hop=hop)


def _animated(trip: Trip, hop: int | None) -> str:
    from layouts.animated_svg import MAX_HOPS, render_animated_svg
    from layouts.build import build_scene

    if hop is None and len(trip.hops) > MAX_HOPS:
        rule = f"an animated picture has room for {MAX_HOPS} hops"
        fix = "give --hop to play one, or export .html"
        raise ConfigError("--to .anim.svg", f"{len(trip.hops)} hops", rule, fix)
    return render_animated_svg(build_scene(trip), hop)


def _html(trip: Trip, hop: int | None) -> str:
    from app.html_player import to_html

    return to_html(trip, hop)


def _png(trip: Trip, hop: int | None) -> bytes:
    from layouts.build import build_scene
    from layouts.raster import to_png

    return to_png(build_scene(trip), hop)


def _gif(trip: Trip, hop: int | None) -> bytes:
    from layouts.build import build_scene
    from layouts.raster import to_gif

    return to_gif(build_scene(trip), hop)


def _perfetto(trip: Trip, hop: int | None) -> str:
    from tracer.exporters.perfetto import to_perfetto
    from tracer.timing.timeline import of_trip
    from tracer.timing.trip_time import trip_time

    return to_perfetto(of_trip(trip, trip_time(trip)))


FORMATS: dict[str, Writer] = {
    ".anim.svg": _animated,
    ".svg": _svg,
    ".html": _html,
    ".png": _png,
    ".gif": _gif,
    ".perfetto.json": _perfetto,
    ".json": _text("tracer.exporters.json_trip:to_json"),
    ".csv": _text("tracer.exporters.csv_trip:to_csv"),
    ".seq.mmd": _text("tracer.exporters.mermaid:to_mermaid_sequence"),
    ".mmd": _text("tracer.exporters.mermaid:to_mermaid"),
    ".dot": _text("tracer.exporters.graph:to_dot"),
    ".graphml": _text("tracer.exporters.graph:to_graphml"),
}


def format_of(target: Path) -> Writer:
    """The writer of a file's ending, the longest that fits.

    Raises:
        ConfigError: when nothing ends so.
    """
    name = target.name.lower()
    for ending in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(ending):
            return FORMATS[ending]
    raise ConfigError(
        "--to", str(target), "has no format that ends so", nearest(target.suffix, list(FORMATS))
    )

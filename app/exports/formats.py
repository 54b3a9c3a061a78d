"""The formats that trips are written in, by the ending of the file."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from app.query.trips import as_asked, one_trip
from tracer.errors import ConfigError, listed

if TYPE_CHECKING:
    from tracer.trip.trip import Trip
    from tracer.trip.trips import Trips

Writer = Callable[["Trips", int | None], str | bytes]
MAX_PLAYED_MOVES = 6_000
MULTI_TOKEN = (".anim.svg", ".svg", ".html", ".png", ".gif", ".json")
"""Endings that have room for several tokens."""


def _text(target: str) -> Writer:
    """A writer that ignores the hop: ``module:function`` of one trip, imported when it is called."""

    def write(trips: Trips, hop: int | None) -> str:
        """The text of one trip."""
        trip = one_trip(trips, "--to", "this format", f"write one token, or to {listed(MULTI_TOKEN)}")
        module, function = target.split(":")
        content: str = getattr(import_module(module), function)(trip)
        return content

    return write


def _svg(trips: Trips, hop: int | None) -> str:
    from layouts import build_scene, render_svg

    return render_svg(build_scene(trips), hop=hop)


def _animated(trips: Trips, hop: int | None) -> str:
    from layouts.animation.animated_svg import MAX_HOPS, render_animated_svg
    from layouts.compose.scene_of_trip import build_scene

    fix = "give --hop to play one, or export .html"
    if hop is None and len(trips.steps) > MAX_HOPS:
        rule = f"an animated picture has room for {MAX_HOPS} hops"
        raise ConfigError("--to .anim.svg", f"{len(trips.steps)} hops", rule, fix)
    scene = build_scene(trips)
    moves = sum(len(each.moves) for each in scene.hops)
    if hop is None and moves > MAX_PLAYED_MOVES:
        rule = f"an animated picture has room for {MAX_PLAYED_MOVES:,}"
        raise ConfigError("--to .anim.svg", f"{moves:,} moves", rule, fix)
    return render_animated_svg(scene, hop)


def _html(trips: Trips, hop: int | None) -> str:
    from app.exports.html_player import to_html

    return to_html(trips, hop)


def _png(trips: Trips, hop: int | None) -> bytes:
    from layouts.compose.scene_of_trip import build_scene
    from layouts.svg.raster import to_png

    return to_png(build_scene(trips), hop)


def _gif(trips: Trips, hop: int | None) -> bytes:
    from layouts.compose.scene_of_trip import build_scene
    from layouts.svg.raster import to_gif

    return to_gif(build_scene(trips), hop)


def _json(trips: Trips, hop: int | None) -> str:
    from tracer.trip.export.tables import to_json

    return to_json(as_asked(trips))


def perfetto_text(trip: Trip) -> str:
    """The trip's hops in time, at link rate, for Perfetto."""
    from tracer.timing.timeline import of_trip
    from tracer.timing.trace import to_perfetto
    from tracer.trip.clock import trip_time

    return to_perfetto(of_trip(trip, trip_time(trip)))


FORMATS: dict[str, Writer] = {
    ".anim.svg": _animated,
    ".svg": _svg,
    ".html": _html,
    ".png": _png,
    ".gif": _gif,
    ".perfetto.json": _text("app.exports.formats:perfetto_text"),
    ".json": _json,
    ".csv": _text("tracer.trip.export.tables:to_csv"),
    ".seq.mmd": _text("tracer.trip.export.mermaid:to_mermaid_sequence"),
    ".mmd": _text("tracer.trip.export.mermaid:to_mermaid"),
    ".dot": _text("tracer.trip.export.graph:to_dot"),
    ".graphml": _text("tracer.trip.export.graph:to_graphml"),
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
    raise ConfigError("--to", str(target), "has no format that ends so", f"end it in {listed(FORMATS)}")


def endings_for(trips: Trips) -> list[str]:
    """Endings that a trip, or trips, can be written with."""
    return [ending for ending in FORMATS if ending in MULTI_TOKEN or not trips.multi_token]

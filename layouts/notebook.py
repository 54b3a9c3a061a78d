"""Pictures for notebooks, registered under the entry-point group ``tokentrip.renderers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.compose.scene_of_trip import build_scene
from layouts.svg.map import render_svg

if TYPE_CHECKING:
    from tracer.trip.trip import Trip
    from tracer.trip.trips import Trips


def trip_svg(trip: Trip | Trips) -> str:
    """The map of the whole trip, or of several tokens' trips, as SVG text."""
    return render_svg(build_scene(trip))

"""Trips as JSON text; ``tracer/schema`` has a contract for one token's (trip) and several (trips)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.several import Trips
    from tracer.trip import Trip


def to_json(trip: Trip | Trips) -> str:
    """The whole trip, or several tokens' trips, indented, with a final newline."""
    return json.dumps(trip.to_dict(), indent=1, ensure_ascii=False) + "\n"

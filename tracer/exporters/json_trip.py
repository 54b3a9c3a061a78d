"""The trip as JSON text; ``tracer/schema/trip.schema.json`` is its contract."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.trip import Trip


def to_json(trip: Trip) -> str:
    """The whole trip, indented, with a final newline."""
    return json.dumps(trip.to_dict(), indent=1, ensure_ascii=False) + "\n"

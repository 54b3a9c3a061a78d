"""The trip as CSV and as JSON text.

CSV has one row per transfer, and one for a hop in which nothing of the token moves. The JSON follows the
contracts in ``tracer/data/schemas``: ``trip`` for one token, ``trips`` for several.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.trip.trip import Trip
    from tracer.trip.trips import Trips


COLUMNS = ("hop", "layer", "stage", "kind", "axis", "dead", "src", "dst", "bytes", "tier", "role")


def to_csv(trip: Trip) -> str:
    """Rows in the order of the trip, under a header line; ``\\n`` ends each."""
    out = io.StringIO()
    import csv

    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for index, hop in enumerate(trip.hops):
        place = (index, hop.layer, hop.stage, hop.kind, hop.axis or "", int(hop.dead))
        for transfer in hop.transfers:
            writer.writerow((*place, *transfer))
        if not hop.transfers:
            writer.writerow((*place, "", "", 0, "", ""))
    return out.getvalue()


def to_json(trip: Trip | Trips) -> str:
    """The whole trip, or several tokens' trips, indented, with a final newline."""
    return json.dumps(trip.to_dict(), indent=1, ensure_ascii=False) + "\n"

"""Downloads: the trip of an address in any format that the command line writes."""

from __future__ import annotations

from pathlib import Path

from app.exports.formats import format_of
from app.exports.stamp import stamped
from app.query.trips import trips_of
from app.web.answers import Answer, as_json, error_payload
from tracer.errors import ConfigError

TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".gif": "image/gif",
    ".html": "text/html",
    ".json": "application/json",
    ".csv": "text/csv",
    ".graphml": "application/xml",
}

KV_HANDOVER, CARD = "last-trip", "card.png"


def export_answer(name: str, query: dict[str, str]) -> Answer:
    """The file of a name, by its ending; the query is a page's.

    ``last-trip`` is the K/V hand-over, ``card.png`` what previews of a link show.
    """
    try:
        if not name.isprintable():
            raise ConfigError("name", name, "must be a name that can be printed", "write trip.svg")
        content = _content(name, query)
    except ConfigError as error:
        return as_json(error_payload(error), 400)
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    return Answer(200, TYPES.get(Path(name).suffix, "text/plain"), data, Path(name).name)


def _content(name: str, query: dict[str, str]) -> str | bytes:
    if name == CARD:
        return _card(query)
    return _kv_handover(name, query) if Path(name).stem == KV_HANDOVER else _trip(name, query)


def _card(query: dict[str, str]) -> bytes:
    from layouts.compose.scene_of_trip import build_scene
    from layouts.svg.card import render_card
    from layouts.svg.raster import png_of_svg

    trips = trips_of(query)
    return png_of_svg(render_card(build_scene(trips), _hop(query, len(trips.steps))), 1)


def _trip(name: str, query: dict[str, str]) -> str | bytes:
    writer = format_of(Path(name))
    trips = trips_of(query)
    hop = _hop(query, len(trips.steps))
    return stamped(writer(trips, hop), Path(name).suffix.lower(), trips, source=None, hop=hop)


def _kv_handover(name: str, query: dict[str, str]) -> str | bytes:
    """The K/V hand-over as the decode page draws it."""
    from app.exports.pool_picture import draw_pools
    from app.reports.decode.decode import pool_scenarios
    from tracer.serving.kv_handover import kv_handover_of

    return draw_pools(kv_handover_of(*pool_scenarios(query), whole=True), Path(name))


def _hop(query: dict[str, str], hops: int) -> int | None:
    text = query.get("hop", "")
    return min(int(text), hops - 1) if text.isascii() and text.isdigit() and len(text) < 9 else None

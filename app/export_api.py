"""What is seen, as a file: the trip of an address in any format the command line writes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import flask

from app.api import error_payload
from app.export_formats import format_of
from app.query import scenario_of
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


def register_exports(server: flask.Flask) -> None:
    """Add ``/export/NAME.ENDING``; the query is a page's."""
    server.add_url_rule("/export/<name>", "export", export)


def export(name: str) -> flask.Response:
    """The file, as a download."""
    from tracer.trip import take_trip

    query = flask.request.args.to_dict()
    try:
        if not name.isprintable():
            raise ConfigError("name", name, "must be a name that can be printed", "write trip.svg")
        writer = format_of(Path(name))
        trip = take_trip(scenario_of(query))
        content = writer(trip, _hop(query, len(trip.hops)))
    except ConfigError as error:
        return flask.make_response(flask.jsonify(error_payload(error)), 400)
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    kind = TYPES.get(Path(name).suffix, "text/plain")
    return flask.send_file(BytesIO(data), mimetype=kind, as_attachment=True, download_name=Path(name).name)


def _hop(query: dict[str, str], hops: int) -> int | None:
    text = query.get("hop", "")
    return min(int(text), hops - 1) if text.isascii() and text.isdigit() and len(text) < 9 else None

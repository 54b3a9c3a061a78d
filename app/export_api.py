"""What is seen, as a file: the trip of an address in any format the command line writes."""

from __future__ import annotations

from pathlib import Path

import flask

from app.api import error_payload
from app.export_formats import format_of
from app.journey import hop_count, journey_of
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
    query = flask.request.args.to_dict()
    try:
        writer = format_of(Path(name))
        journey = journey_of(query)
        content = writer(journey, _hop(query, hop_count(journey)))
    except ConfigError as error:
        return flask.make_response(flask.jsonify(error_payload(error)), 400)
    response = flask.make_response(content)
    response.mimetype = TYPES.get(Path(name).suffix, "text/plain")
    response.headers["Content-Disposition"] = f'attachment; filename="{Path(name).name}"'
    return response


def _hop(query: dict[str, str], hops: int) -> int | None:
    text = query.get("hop", "")
    return min(int(text), hops - 1) if text.isascii() and text.isdigit() and len(text) < 9 else None

"""The player for an iframe of another site: the one address that may be framed, and only where asked for."""

from __future__ import annotations

from html import escape

import flask

from app.web.answers import Answer
from app.web.api import EXPORT, answer

VARIABLE, ENDPOINT, PATH = "TOKENTRIP_EMBED", "embed", "/embed"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors *"
)
"""Of a page that holds all it needs and no reader's secrets: it has no forms and asks for nothing."""
REFUSED = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>tokentrip: not drawn</title></head>
<body><p>{text}</p></body>
</html>
"""


def register_embed(server: flask.Flask) -> None:
    """Add ``/embed``, which takes the query of the page Trip and gives the exported player."""
    server.add_url_rule(PATH, ENDPOINT, _embedded)


def _embedded() -> flask.Response:
    query = flask.request.query_string.decode("utf-8", "replace")
    found = answer(f"{EXPORT}trip.html", query, None)
    body = found.body if found.status == 200 else _refused(found)
    response = flask.Response(body, found.status, mimetype="text/html")
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Cache-Control"] = "no-cache"
    return response


def _refused(found: Answer) -> str:
    text = flask.json.loads(found.body)["error"]["text"]
    return REFUSED.format(text=escape(text))

"""The answers of ``app.web.api`` served by Flask: routes, limits, and tags for what a browser keeps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from io import BytesIO

import flask
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from app.vendor import register_vendor
from app.web.answers import Answer, as_json, error_payload
from app.web.api import API, BUILDERS, EXPORT, SENT, Sent, answer, failure_payload
from app.web.budget import Budget
from tracer.errors import ConfigError

MAX_BODY_BYTES = 17 << 20
BUDGET = Budget()


def register_api(server: flask.Flask) -> None:
    """Add ``/api/…``, ``/export/…`` and ``/healthz``."""
    for name in BUILDERS:
        server.add_url_rule(f"{API}{name}", f"api_{name}", _asked)
    for name, sent in SENT.items():
        server.add_url_rule(f"{API}{name}", f"sent_{name}", _taking(sent), methods=["POST"])
    server.add_url_rule(f"{API}<path:name>", "api_unknown", unknown)
    server.add_url_rule(f"{EXPORT}<name>", "export", export)
    server.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    server.register_error_handler(HTTPException, failure)
    register_vendor(server)
    server.add_url_rule("/healthz", "healthz", lambda: {"status": "ok"})


def unknown(name: str) -> flask.Response:
    """The answer to an address under ``/api/`` that does not exist."""
    flask.abort(404)


def failure(error: HTTPException) -> tuple[flask.Response, int]:
    """The answer to a failed request."""
    status = error.code or 500
    response = flask.jsonify(failure_payload(status, flask.request.path))
    if status == 405 and isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(error.valid_methods)
    return response, status


def _answer(body: bytes | None = None) -> Answer:
    """What this request asks, of the path without the prefix that a proxy adds."""
    path, query = flask.request.path, flask.request.query_string.decode("utf-8", "replace")
    try:
        return BUDGET.hold(lambda: answer(path, query, body))
    except ConfigError as error:
        return as_json(error_payload(error), 400 if path.startswith(EXPORT) else 200)


def _asked() -> flask.Response:
    """One question; a browser that has its answer already is told so."""
    found = _answer()
    response = flask.Response(found.body, found.status, mimetype=found.kind)
    response.headers["Cache-Control"] = "no-cache"
    response.set_etag(hashlib.sha256(found.body).hexdigest()[:24])
    response.make_conditional(flask.request)
    return response


def _taking(sent: Sent) -> Callable[[], flask.Response]:
    def view() -> flask.Response:
        """One file or text, of which no more is read than shows that it is too large."""
        found = _answer(flask.request.stream.read(sent.most_bytes() + 1))
        return flask.Response(found.body, found.status, mimetype=found.kind)

    return view


def export(name: str) -> flask.Response:
    """A file, as a download."""
    found = _answer()
    if not found.name:
        return flask.Response(found.body, found.status, mimetype=found.kind)
    return flask.send_file(
        BytesIO(found.body), mimetype=found.kind, as_attachment=True, download_name=found.name
    )

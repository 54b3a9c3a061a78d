"""What pages fetch: a query in, JSON out. Nothing is kept between two requests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import flask
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.http import HTTP_STATUS_CODES

from app.pages import PAGES, Builder, Payload
from app.query.address import bare_scenario_of
from app.query.refusal import refusal
from app.vendor import register_vendor
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

MAX_BODY_BYTES = 17 << 20


def register_api(server: flask.Flask) -> None:
    """Add ``/api/…`` and ``/healthz``."""
    for name, build in BUILDERS.items():
        server.add_url_rule(f"/api/{name}", f"api_{name}", _answer(build))
    server.add_url_rule("/api/upload", "api_upload", upload, methods=["POST"])
    server.add_url_rule("/api/launch", "api_launch", launch, methods=["POST"])
    server.add_url_rule("/api/batch", "api_batch_of_file", batch_of_file, methods=["POST"])
    server.add_url_rule("/api/<path:name>", "api_unknown", unknown)
    server.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    server.register_error_handler(HTTPException, failure)
    register_vendor(server)
    server.add_url_rule("/healthz", "healthz", lambda: {"status": "ok"})


def unknown(name: str) -> flask.Response:
    """The answer to an address under ``/api/`` that does not exist."""
    flask.abort(404)


def failure(error: HTTPException) -> tuple[flask.Response, int]:
    """The answer to a failed request: the words of its status, without internals."""
    status = error.code or 500
    words = HTTP_STATUS_CODES.get(status, "failed")
    field = flask.request.path if status == 404 else "request"
    parts = {"field": field, "rule": f"was refused: {words}", "fix": "go back to the page and try again"}
    response = flask.jsonify({"error": {**parts, "text": f"{status} {words}"}})
    if status == 405 and isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(error.valid_methods)
    return response, status


def _answer(build: Builder) -> Callable[[], flask.Response]:
    def view() -> flask.Response:
        """One request."""
        try:
            response = flask.jsonify(build(flask.request.args.to_dict()))
        except ConfigError as error:
            # A wrong value is an answer, not a failed request: browsers report those as page errors.
            return flask.jsonify(error_payload(error))
        response.headers["Cache-Control"] = "no-cache"
        response.set_etag(hashlib.sha256(response.get_data()).hexdigest()[:24])
        response.make_conditional(flask.request)
        return response

    return view


def error_payload(error: ConfigError) -> Payload:
    """An error as its parts, and as the sentence that joins them."""
    return {"error": refusal(error)}


def trip_payload(query: dict[str, str]) -> Payload:
    """The scene of a trip and its map; ``rows=all`` draws untouched rows, ``follow=0,5,9`` several tokens."""
    from app.exports.formats import endings_for
    from app.exports.html_player import player_values
    from app.query.trips import trips_of
    from layouts import build_scene

    trips = trips_of(query)
    scene = build_scene(trips, all_lines=query.get("rows") == "all")
    more = {"token": token_payload(trips.scenario), "exports": endings_for(trips)}
    return player_values(scene) | more


def token_payload(scenario: Scenario) -> Payload:
    """Which token is followed, and which others can be."""
    model = scenario.model
    return {
        "position": scenario.position,
        "positions": _positions(scenario),
        "replica": scenario.replica,
        "replicas": scenario.mesh.dp,
        "seed": scenario.seed,
        "top_k": model.top_k if model.moe_layers else None,
        "picks": {str(layer): list(experts) for layer, experts in scenario.layer_picks().items()},
        "given_picks": [layer for layer, _ in scenario.picks],
    }


def _positions(scenario: Scenario) -> tuple[int, int | None]:
    """First and last position that can be asked for; decode goes on without end."""
    prompt = scenario.token.prompt
    return (prompt, None) if scenario.decodes else (0, prompt - 1)


def gpu_payload(query: dict[str, str]) -> Payload:
    """One GPU: where it sits, its coordinates, its groups and its experts."""
    from app.reports.gpu_card import gpu_card

    scenario = bare_scenario_of(query)
    text = query.get("rank", "")
    return gpu_card(scenario, int(text) if text.isascii() and text.isdigit() else -1)


def presets_payload(query: dict[str, str]) -> Payload:
    """Presets that load here, each with its source."""
    return {"presets": _presets()}


@cache
def _presets() -> list[dict[str, str | None]]:
    """The presets, read once: every page asks for them, and reading them takes as long as a long trip."""
    from tracer.scenario.files import load_scenario, preset_names

    return [{"name": name, "source": load_scenario(name).source} for name in preset_names()]


def mesh_payload(query: dict[str, str]) -> Payload:
    """The mesh page: controls, values, and what the mesh does or what is wrong."""
    from app.reports.mesh import mesh_report
    from app.reports.mesh_fields import fields_payload

    return {"fields": fields_payload(), **mesh_report(query)}


def compare_payload(query: dict[str, str]) -> Payload:
    """The compare page: both sides, their axes and hops."""
    from app.reports.compare import compare_report

    return compare_report(query)


def trace_payload(query: dict[str, str]) -> Payload:
    """The timelines of the time page, for a trace viewer."""
    from app.reports.time.time import time_trace

    return time_trace(query)


def learn_payload(query: dict[str, str]) -> Payload:
    """One chapter of the learn page."""
    from app.lessons import chapter_payload

    return chapter_payload(query.get("chapter", ""))


def quiz_answer(query: dict[str, str]) -> Payload:
    """One question of the quiz."""
    from app.lessons import quiz_payload

    text = query.get("seed_of_quiz", "1")
    return quiz_payload(int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1)


def flags_payload(query: dict[str, str]) -> Payload:
    """Launch flags as keys of an address."""
    from app.reports.flags import flags_report

    return flags_report(query)


def upload() -> flask.Response:
    """A file in, keys of an address out; larger files are refused unread."""
    from app.web.uploads import read_upload

    try:
        return flask.jsonify(read_upload(_body(), flask.request.args.to_dict()))
    except ConfigError as error:
        return flask.jsonify(error_payload(error))


def launch() -> flask.Response:
    """What launches a framework, as text, to keys of an address; longer texts are refused unread."""
    from app.web.uploads import read_launch_text

    asked = flask.request.args.to_dict()
    try:
        return flask.jsonify(read_launch_text(_body(), asked))
    except ConfigError as error:
        return flask.jsonify(error_payload(error))


def _body() -> bytes:
    from app.reports.flags import MAX_BYTES

    return flask.request.stream.read(MAX_BYTES + 1)


def batch_of_file() -> flask.Response:
    """The batch page of a file of picks, which is read in memory, counted and forgotten."""
    from app.reports.batch.batch import batch_report
    from app.reports.batch.picks import MAX_BYTES
    from tracer.batch.picks.source import InMemory

    query = flask.request.args.to_dict()
    sent = InMemory(query.pop("picks_file", ""), flask.request.stream.read(MAX_BYTES + 1))
    try:
        return flask.jsonify(batch_report(query, sent))
    except ConfigError as error:
        return flask.jsonify(error_payload(error))


BUILDERS: dict[str, Builder] = {
    "trip": trip_payload,
    "gpu": gpu_payload,
    "presets": presets_payload,
    "mesh": mesh_payload,
    "compare": compare_payload,
    "trace": trace_payload,
    "learn": learn_payload,
    "quiz": quiz_answer,
    "flags": flags_payload,
    **{page.word: page.build for page in PAGES if page.report},
}

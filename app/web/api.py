"""What pages fetch: an address in, an answer out. Nothing is kept between two questions.

A page asks the same whether a server runs the engine or the tab itself does, and gets the same bytes:
:func:`answer` needs the standard library alone. ``app.web.flask_api`` serves it, ``app.site`` puts it into a
folder of static files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from app.pages import PAGES, Builder, Payload
from app.query.address import bare_scenario_of
from app.web.answers import Answer, as_json, error_payload
from app.web.export_api import export_answer
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def answer(path: str, query: str, body: bytes | None = None) -> Answer:
    """The answer to a path under ``/api/`` or ``/export/`` with its query and what is sent along.

    A wrong value is an answer, not a failed question: browsers report those as page errors. A path that
    does not exist is a 404; a file that cannot be written is a 400, with the reason as JSON.
    """
    asked = read_query(query)
    if path.startswith(EXPORT):
        return export_answer(path.removeprefix(EXPORT), asked)
    name = path.removeprefix(API) if path.startswith(API) else ""
    try:
        if name in SENT and body is not None:
            return as_json(SENT[name].build(asked, body))
        if name in BUILDERS:
            return as_json(BUILDERS[name](asked))
    except ConfigError as error:
        return as_json(error_payload(error))
    return as_json(failure_payload(HTTPStatus.NOT_FOUND, path), HTTPStatus.NOT_FOUND)


def read_query(query: str) -> dict[str, str]:
    """The keys of a query; of a key that stands twice the first counts.

    >>> read_query("mesh.tp=4&follow=0%2C5&mesh.tp=8")
    {'mesh.tp': '4', 'follow': '0,5'}
    """
    found: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True, errors="replace"):
        found.setdefault(key, value)
    return found


def failure_payload(status: int, path: str) -> Payload:
    """The answer to a failed question: the words of its status, without internals."""
    words = HTTPStatus(status).phrase if status in set(HTTPStatus) else "failed"
    field = path if status == HTTPStatus.NOT_FOUND else "request"
    parts = {"field": field, "rule": f"was refused: {words}", "fix": "go back to the page and try again"}
    return {"error": {**parts, "text": f"{status} {words}"}}


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


def upload(query: dict[str, str], body: bytes) -> Payload:
    """A file in, keys of an address out."""
    from app.web.uploads import read_upload

    return read_upload(body, query)


def launch(query: dict[str, str], body: bytes) -> Payload:
    """What launches a framework, as text, to keys of an address."""
    from app.web.uploads import read_launch_text

    return read_launch_text(body, query)


def batch_of_file(query: dict[str, str], body: bytes) -> Payload:
    """The batch page of a file of picks, which is read in memory, counted and forgotten."""
    from app.reports.batch.batch import batch_report
    from tracer.batch.picks.source import InMemory

    return batch_report(query, InMemory(query.pop("picks_file", ""), body))


def run_of_sent(query: dict[str, str], body: bytes) -> Payload:
    """The page Run of files that are sent along, which are examined and forgotten."""
    from app.reports.run.run import run_of_files

    return run_of_files(query, body)


def _run_bytes() -> int:
    from app.reports.run.files import MAX_BYTES

    return MAX_BYTES


def _launch_bytes() -> int:
    from app.reports.flags import MAX_BYTES

    return MAX_BYTES


def _picks_bytes() -> int:
    from app.reports.batch.picks import MAX_BYTES

    return MAX_BYTES


@dataclass(frozen=True, slots=True)
class Sent:
    """What takes a file or a text: its builder, and how many bytes it looks at; more are refused unread."""

    build: Callable[[dict[str, str], bytes], dict[str, Any]]
    most_bytes: Callable[[], int]


API, EXPORT = "/api/", "/export/"
SENT = {
    "upload": Sent(upload, _launch_bytes),
    "launch": Sent(launch, _launch_bytes),
    "batch": Sent(batch_of_file, _picks_bytes),
    "run": Sent(run_of_sent, _run_bytes),
}
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

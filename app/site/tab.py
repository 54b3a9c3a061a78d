"""A question of a page, answered inside the tab: as the server answers, without the server."""

from __future__ import annotations

from app.query.address import DEFAULT
from app.web.answers import Answer, as_json, error_payload
from app.web.api import answer, read_query
from tracer.errors import ConfigError

COMMANDS = {"batch": "census", "numbers": "replay", "run": "run"}
"""The command that answers what a page of numpy does."""


def answer_in_tab(path: str, query: str, body: bytes | None = None) -> Answer:
    """As :func:`app.web.api.answer`; what needs a package that the tab has not names the command instead."""
    try:
        return answer(path, query, body)
    except ModuleNotFoundError as error:
        name = path.rpartition("/")[2]
        scenario = read_query(query).get("scenario") or DEFAULT
        command = f"tokentrip {COMMANDS.get(name, 'export')} {scenario}"
        if name not in COMMANDS:
            command += f" --to {name}"
        # The engine's own modules that are not here are those that need numpy.
        package = (error.name or "numpy").partition(".")[0]
        missing = "numpy" if package in ("tracer", "app", "layouts") else package
        rule = f"needs {missing}, which this page's Python has not"
        refused = ConfigError(f"this page's {name}", None, rule, f"run {command}")
        return as_json(error_payload(refused), 400 if path.startswith("/export/") else 200)

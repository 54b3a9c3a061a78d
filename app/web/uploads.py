"""Files that a reader sends: read in memory, checked, and turned into keys of an address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from app.query.address import flatten, scenario_of
from app.reports.flags import MAX_BYTES, launch_report
from tracer.errors import ConfigError
from tracer.scenario.read import PLAIN, TABLES, parse_text
from tracer.scenario.scenario import BareScenario

_ARRAYS = ("npy", "npz", "pt", "pth")
_ANSWER = frozenset({"choices", "meta_info", "routed_experts", "rollout_routed_experts"})
"""Keys of a response, or of a rollout, that carries recorded picks."""
_SCENARIO = frozenset({*TABLES, *PLAIN}) - {"model", "name", "source", "seed"}
"""Keys that a scenario has, and a framework's configuration has not."""


def read_upload(data: bytes, asked: Mapping[str, str]) -> dict[str, Any]:
    """Keys for the address from a file, by what it holds.

    A scenario (.toml, .json), a model's config.json, or anything that launches a framework: a script, a
    manifest, a framework's own configuration; or recorded picks, which the token of the page's ``address``
    then follows. ``asked`` is as for :func:`read_launch_text`.

    Raises:
        ConfigError: when the file is too large, is not text, or breaks a rule.
    """
    name = asked.get("name", "")
    suffix = name.lower().rpartition(".")[2]
    if suffix in _ARRAYS:
        return _recorded_keys(data, name, asked.get("address", ""))
    text = _text(data, name)
    if suffix not in ("toml", "json"):
        return launch_report(text, asked)
    tables = parse_text(text, f".{suffix}", name)
    if isinstance(tables, dict) and {"architectures", "model_type"} & set(tables):
        return _model_keys(text, name)
    if isinstance(tables, dict) and _ANSWER & set(tables):
        return _recorded_keys(data, name, asked.get("address", ""))
    if isinstance(tables, dict) and tables and not _SCENARIO & set(tables):
        return launch_report(text, asked)
    BareScenario.from_dict(tables)
    return {"keys": {"scenario": "", **flatten(tables)}, "warnings": [], "reset": True}  # type: ignore[arg-type]


def read_launch_text(data: bytes, asked: Mapping[str, str]) -> dict[str, Any]:
    """What a pasted text launches, as :func:`~app.reports.flags.launch_report` says it.

    Raises:
        ConfigError: when it is too long, is not text, or launches nothing that is read.
    """
    return launch_report(_text(data, asked.get("name") or "text"), asked)


def _text(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise ConfigError("file", name, f"is over {MAX_BYTES:,} bytes", "send a scenario, or what launches")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("file", name, "is not UTF-8 text", "send a text file") from error


def _model_keys(text: str, name: str) -> dict[str, Any]:
    from tracer.model.configs import read_config

    read = read_config(
        json.loads(text), name=name.rsplit("/", 1)[-1].removesuffix(".json"), source="uploaded"
    )
    keys = {f"model.{key}": value for key, value in flatten(read.spec.to_dict()).items()}
    return {"keys": {"model": "", "picks": "", **keys}, "warnings": list(read.warnings), "reset": False}


def _recorded_keys(data: bytes, name: str, address: str) -> dict[str, Any]:
    """Keys with which the token of a page's address follows the first recorded request of a file."""
    from tracer.batch.picks.files import read_requests
    from tracer.batch.picks.recording import follow_recording, with_length
    from tracer.batch.picks.source import InMemory

    if len(data) > MAX_BYTES:
        fix = "follow it with `tokentrip trip SCENARIO --picks FILE --position N`"
        raise ConfigError("file", name, f"is over {MAX_BYTES:,} bytes", fix)
    query = dict(parse_qsl(address, keep_blank_values=True))
    scenario = scenario_of(query)
    request = read_requests(InMemory(name, data), scenario.model)[0]
    followed = follow_recording(with_length(scenario, request), request)
    token = {"prompt": followed.token.prompt, "position": followed.position, "text": followed.token.text}
    picks = {str(layer): list(experts) for layer, experts in followed.picks}
    kept = {key: value for key, value in query.items() if not key.startswith(("token.", "picks."))}
    kept |= {key: query[key] for key in query if key.startswith("token.") and key != "token.gpu"}
    said = f"The token at position {followed.position} of {request.tokens} follows its recorded picks."
    return {
        "keys": {**kept, **flatten({"token": token, "picks": picks})},
        "warnings": [said],
        "reset": True,
    }

"""Files that a reader sends: read in memory, checked, and turned into keys of an address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from app.query.address import flatten
from app.reports.flags import MAX_BYTES, launch_report
from tracer.errors import ConfigError
from tracer.scenario.read import PLAIN, TABLES, parse_text
from tracer.scenario.scenario import BareScenario

_SCENARIO = frozenset({*TABLES, *PLAIN}) - {"model", "name", "source", "seed"}
"""Keys that a scenario has, and a framework's configuration has not."""


def read_upload(data: bytes, asked: Mapping[str, str]) -> dict[str, Any]:
    """Keys for the address from a file, by what it holds.

    A scenario (.toml, .json), a model's config.json, or anything that launches a framework: a script, a
    manifest, a framework's own configuration. ``asked`` is as for :func:`read_launch_text`.

    Raises:
        ConfigError: when the file is too large, is not text, or breaks a rule.
    """
    name = asked.get("name", "")
    text = _text(data, name)
    suffix = name.lower().rpartition(".")[2]
    if suffix not in ("toml", "json"):
        return launch_report(text, asked)
    tables = parse_text(text, f".{suffix}")
    if isinstance(tables, dict) and {"architectures", "model_type"} & set(tables):
        return _model_keys(text, name)
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

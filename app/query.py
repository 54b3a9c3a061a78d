"""The whole state of a page lives in its address: a query string names a scenario, and changes to it.

``scenario=six-cuts`` is a preset; any other key is a key of the scenario file with its table before a
dot: ``mesh.tp=4&token.position=3&picks.1=5,27``. An empty value takes a key of the preset out.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from tracer.errors import ConfigError, nearest
from tracer.presets import preset_names
from tracer.scenario import Scenario
from tracer.scenario_read import PLAIN, TABLES, scenario_from_dict

DEFAULT = "six-cuts"
MAX_QUERY = 16_384
PAGE_KEYS = ("scenario", "hop", "rows", "theme", "speed", "rank", "chapter", "a", "b")
_TEXT_KEYS = frozenset({"mesh.order", "mesh.expert_order", "name", "source", "model.name"})


def scenario_of(query: Mapping[str, str]) -> Scenario:
    """The scenario that a page's query names.

    Raises:
        ConfigError: for an unknown preset or key, or a value that breaks a rule.
    """
    if sum(len(key) + len(value) for key, value in query.items()) > MAX_QUERY:
        raise ConfigError("address", "this", f"is over {MAX_QUERY:,} characters", "leave some keys out")
    tables = preset_tables(query.get("scenario", DEFAULT))
    for key, text in query.items():
        if key not in PAGE_KEYS:
            _set(tables, key, text)
    return scenario_from_dict(tables)


def preset_tables(name: str) -> dict[str, Any]:
    """A preset as its file has it, before defaults are filled in.

    Raises:
        ConfigError: when there is no such preset.
    """
    if name not in preset_names():
        raise ConfigError("scenario", name, "is not a preset", nearest(name, list(preset_names())))
    path = resources.files("tracer") / "data" / "presets" / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _set(tables: dict[str, Any], key: str, text: str) -> None:
    """Set, or with an empty text take out, one dotted key."""
    *path, last = key.split(".")
    table = tables
    known = path[0] in TABLES if path else last in (*PLAIN, *TABLES)
    if not known:
        raise ConfigError(key, text, "is not a key of a scenario", nearest(key, [*TABLES, *PAGE_KEYS]))
    for name in path:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ConfigError(key, text, "goes into a value, not a table", "drop the last part of the key")
    if text == "":
        table.pop(last, None)
    else:
        table[last] = _value(key, text)


def _value(key: str, text: str) -> object:
    """A number, truth value, list or text, as the scenario file would have it."""
    if key in _TEXT_KEYS:
        return text
    if key.startswith("picks.") or "," in text:
        return [_value("", part) for part in text.split(",") if part]
    try:
        return json.loads(text)
    except ValueError:
        return text

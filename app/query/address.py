"""The whole state of a page lives in its address: a query string names a scenario, and changes to it.

``scenario=six-cuts`` is a preset (empty: start from nothing); any other key is a key of the scenario
file with its table before a dot: ``mesh.tp=4&token.position=3&picks.1=5,27``. An empty value takes a
key, or with the table's name alone a whole table, out of the preset.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from app.pages import PAGE_KEYS
from tracer.errors import ConfigError, nearest
from tracer.scenario.files import preset_names
from tracer.scenario.read import PLAIN, TABLES
from tracer.scenario.scenario import BareScenario, Scenario

Tables = dict[str, Any]
DEFAULT = "six-cuts"
MAX_QUERY = 16_384
_TEXT_KEYS = frozenset(
    {"mesh.order", "mesh.expert_order", "token.text", "name", "source", "model.name", "model.source"}
)


def scenario_of(query: Mapping[str, str]) -> Scenario:
    """The scenario that a page's query names.

    Raises:
        ConfigError: for an unknown preset or key, a value that breaks a rule, or no model.
    """
    return Scenario.from_dict(tables_of_query(query))


def bare_scenario_of(query: Mapping[str, str]) -> BareScenario:
    """The same where groups and coordinates alone are asked: the scenario may have no model.

    Raises:
        ConfigError: for an unknown preset or key, or a value that breaks a rule.
    """
    return BareScenario.from_dict(tables_of_query(query))


def tables_of_query(query: Mapping[str, str]) -> Tables:
    """The tables that a page's query names, as a scenario file would have them, unchecked.

    Raises:
        ConfigError: for an unknown preset, a key that no scenario has, or too long a query.
    """
    if sum(len(key) + len(value) for key, value in query.items()) > MAX_QUERY:
        raise ConfigError("address", "this", f"is over {MAX_QUERY:,} characters", "leave some keys out")
    name = query.get("scenario", DEFAULT)
    tables = preset_tables(name) if name else {}
    # Whole tables go out before their keys come in.
    for key, text in sorted(query.items(), key=lambda pair: "." in pair[0]):
        if key not in PAGE_KEYS:
            _set(tables, key, text)
    return tables


def preset_tables(name: str) -> Tables:
    """A preset as its file has it, before defaults are filled in.

    Raises:
        ConfigError: when there is no such preset.
    """
    if name not in preset_names():
        raise ConfigError("scenario", name, "is not a preset", nearest(name, list(preset_names())))
    path = resources.files("tracer") / "data" / "presets" / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def flatten(tables: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Tables as the keys of a query; nulls are left out.

    >>> flatten({"mesh": {"tp": 2, "order": "tp-cp"}, "picks": {"1": [5, 27]}})
    {'mesh.tp': '2', 'mesh.order': 'tp-cp', 'picks.1': '[5, 27]'}
    """
    found: dict[str, str] = {}
    for key, value in tables.items():
        if isinstance(value, Mapping) and not prefix:
            found |= flatten(value, f"{key}.")
        elif value is not None:
            found[f"{prefix}{key}"] = value if isinstance(value, str) else json.dumps(value)
    return found


def _set(tables: Tables, key: str, text: str) -> None:
    """Set one dotted key, or remove it when the text is empty."""
    table, _, last = key.rpartition(".")
    known = table in TABLES if table else last in (*PLAIN, *TABLES)
    if not known:
        fix = nearest(key, [*TABLES, *PLAIN])
        raise ConfigError(key or "address", text, "is not a key of a scenario", fix)
    target = tables.setdefault(table, {}) if table else tables
    if text == "":
        target.pop(last, None)
    else:
        target[last] = text if key in _TEXT_KEYS else _value(text)


def _value(text: str) -> object:
    """A JSON value, a list of numbers (``5,27``), or text."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 1 and all(part.lstrip("-").isdigit() for part in parts if part):
        return [int(part) for part in parts if part]
    return text

"""Configuration files (YAML, TOML, JSON) to settings, by a framework's table of flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.frameworks.flags import Flag, Kind, convert
from tracer.frameworks.parsing import FlagTable, Parsed

if TYPE_CHECKING:
    from pathlib import Path

SUFFIXES = (".yaml", ".yml", ".toml", ".json")
MAX_KEYS = 20_000


def read_framework_file(path: Path) -> Mapping[str, object]:
    """The tables of a configuration file.

    Raises:
        ConfigError: when it cannot be read, does not parse, or is not a table.
    """
    from tracer.scenario.files import read_text

    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError("--file", str(path), f"must end in {', '.join(SUFFIXES)}", "rename it")
    return parse_config(read_text(path, "--file"), suffix)


def parse_config(text: str, suffix: str) -> Mapping[str, object]:
    """The tables of a configuration text; ``suffix`` is one of ``SUFFIXES``.

    Raises:
        ConfigError: when it does not parse, or is not a table.
    """
    from tracer.frameworks.documents import load_documents

    documents = load_documents(text, suffix, "--file")
    tables = documents[0] if len(documents) == 1 else None
    if not isinstance(tables, dict):
        raise ConfigError("--file", f"{len(text)} characters", "must be a table of keys", "write key: value")
    return tables


def settings_from(tables: Mapping[str, object], table: FlagTable) -> Parsed:
    """Settings that tables give: by dotted key, by the framework's own name, or by the flag's spelling.

    Keys that are none of these are listed as unknown.

    Raises:
        ConfigError: for a value of the wrong kind, or more than ``MAX_KEYS`` keys.
    """
    known = known_keys(table)
    stops = {key for key, flag in known.items() if flag.kind is Kind.JSON}
    parsed = Parsed()
    for count, (key, value) in enumerate(leaves(tables, "", stops)):
        if count >= MAX_KEYS:
            raise ConfigError("--file", f"over {MAX_KEYS} keys", "is too large", "keep the parallel settings")
        flag = known.get(key) or known.get(key.replace("-", "_"))
        if flag is None:
            parsed.unknown.append(key)
            if str(value).lower() in ("false", "none", "null", "no", "auto"):
                parsed.off.add(key)
        elif value is not None:
            parsed.values[flag.dest] = convert(flag, value)
    return parsed


def known_keys(table: FlagTable) -> dict[str, Flag]:
    """A framework's flags by every key that a file may give them under."""
    known: dict[str, Flag] = {}
    for flag in table.flags:
        for spelling in flag.spellings:
            known.setdefault(spelling.lstrip("-").replace("-", "_"), flag)
    for flag in table.flags:
        for key in (flag.dest, *flag.keys):
            known[key] = flag
    return known


def leaves(
    tables: Mapping[str, object], prefix: str, stops: set[str], depth: int = 0
) -> Iterator[tuple[str, object]]:
    """Every value of nested tables with its dotted key; keys of ``stops`` are not gone into."""
    for key, value in tables.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and path not in stops and depth < 12:
            yield from leaves(value, f"{path}.", stops, depth + 1)
        else:
            yield path, value

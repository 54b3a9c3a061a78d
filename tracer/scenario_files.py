"""Scenario files: TOML and JSON text in, and presets by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.scenario_read import scenario_from_dict

if TYPE_CHECKING:
    from tracer.model_spec import ModelSpec
    from tracer.scenario import Scenario


def scenario_from_text(
    text: str, suffix: str, *, read_config: Callable[[str], ModelSpec] | None = None
) -> Scenario:
    """A scenario from TOML or JSON text; ``suffix`` is ``.toml`` or ``.json``.

    Raises:
        ConfigError: when the text does not parse, or as :func:`scenario_from_dict`.
    """
    return scenario_from_dict(parse_text(text, suffix), read_config=read_config)


def parse_text(text: str, suffix: str) -> object:
    """Parsed TOML or JSON.

    Raises:
        ConfigError: when the text does not parse; the rule says where.
    """
    import json
    import tomllib

    try:
        return tomllib.loads(text) if suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        kind = suffix.lstrip(".").upper()
        raise ConfigError(
            "scenario", f"{len(text)} characters", f"is not valid {kind}: {error}", "mend the text"
        ) from error


def scenario_from_file(path: Path) -> Scenario:
    """A scenario file (.toml, .json); ``model.config`` is read relative to it.

    Raises:
        ConfigError: when the file cannot be read, or as :func:`scenario_from_text`.
    """
    text = read_text(path, "scenario")
    return scenario_from_text(
        text, path.suffix.lower(), read_config=lambda name: _read_model(path.parent / name)
    )


def read_text(path: Path, field: str) -> str:
    """Text of a file.

    Raises:
        ConfigError: when it is missing, unreadable or not UTF-8.
    """
    try:
        return read_bytes(path, field).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(field, str(path), f"cannot be read: {error}", "check the path") from error


def read_bytes(path: Path, field: str) -> bytes:
    """What a file holds.

    Raises:
        ConfigError: when it is missing or unreadable.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(field, str(path), f"cannot be read: {error}", "check the path") from error


def _read_model(path: Path) -> ModelSpec:
    from tracer.model_config import read_config

    return read_config(parse_text(read_text(path, "model.config"), ".json")).spec

"""Scenario files: presets by name, and TOML and JSON files of one's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.data import FOLDER
from tracer.errors import ConfigError, nearest
from tracer.scenario.read import parse_text
from tracer.scenario.scenario import BareScenario, Scenario, with_model

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec

SUFFIXES = (".toml", ".json")
_PRESETS = FOLDER / "presets"


def load_bare_scenario(source: str | Path) -> BareScenario:
    """A scenario from a preset's name or from a .toml or .json file, which may have no model.

    ``model.config`` is read relative to the file.

    Raises:
        ConfigError: when the name is unknown, the file unreadable, or the scenario breaks a rule; a note
            names the file.
    """
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES:
        return preset(str(source))
    data = parse_text(read_text(path, "scenario"), path.suffix.lower(), str(path))
    try:
        return BareScenario.from_dict(data, read_config=lambda name: _read_model(path.parent / name))
    except ConfigError as error:
        error.add_note(f"in {path}")
        raise


def load_scenario(source: str | Path) -> Scenario:
    """A scenario from a preset's name or from a .toml or .json file.

    Raises:
        ConfigError: as :func:`load_bare_scenario`, or when it has no model.
    """
    return with_model(load_bare_scenario(source))


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
    from tracer.model.configs import read_config

    beside = path.with_name(path.name.replace("config.json", "hf_quant_config.json"))
    quantisation = None
    if beside != path and beside.is_file():
        quantisation = parse_text(read_text(beside, "model.config"), ".json", str(beside))
    config = parse_text(read_text(path, "model.config"), ".json", str(path))
    return read_config(config, quantisation=quantisation).spec


@cache
def preset_names() -> tuple[str, ...]:
    """Names of all presets, in alphabetical order."""
    return tuple(sorted(entry.stem for entry in _PRESETS.glob("*.toml")))


def preset(name: str) -> Scenario:
    """A preset by name.

    Raises:
        ConfigError: when there is none of that name; the nearest is named.
    """
    if name not in preset_names():
        raise ConfigError(
            "scenario", name, "is neither a file nor a preset", nearest(name, list(preset_names()))
        )
    return Scenario.from_toml((_PRESETS / f"{name}.toml").read_text(encoding="utf-8"))

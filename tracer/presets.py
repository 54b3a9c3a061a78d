"""Scenarios that ship with the package, each with its source."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, nearest

if TYPE_CHECKING:
    from tracer.scenario import Scenario

SUFFIXES = (".toml", ".json")


@cache
def preset_names() -> tuple[str, ...]:
    """Names of all presets, in alphabetical order."""
    folder = resources.files("tracer") / "data" / "presets"
    return tuple(
        sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    )


def preset(name: str) -> Scenario:
    """A preset by name.

    Raises:
        ConfigError: when there is none of that name; the nearest is named.
    """
    from tracer.scenario_files import scenario_from_text

    if name not in preset_names():
        raise ConfigError(
            "scenario", name, "is neither a file nor a preset", nearest(name, list(preset_names()))
        )
    path = resources.files("tracer") / "data" / "presets" / f"{name}.toml"
    return scenario_from_text(path.read_text(encoding="utf-8"), ".toml")


def load_scenario(source: str | Path) -> Scenario:
    """A scenario from a preset's name or from a .toml or .json file.

    Raises:
        ConfigError: when the name is unknown, the file unreadable, or the scenario breaks a rule.
    """
    from tracer.scenario_files import scenario_from_file

    path = Path(source)
    if path.suffix.lower() in SUFFIXES:
        return scenario_from_file(path)
    return preset(str(source))

"""Launch flags pasted from a framework, turned into keys of an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.query.address import flatten, scenario_of
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec

MAX_LINE = 8_192


def flags_report(query: dict[str, str]) -> dict[str, Any]:
    """Keys for the address from a launch line, and what the framework's own rules warn of.

    The model is the page's: a launch line seldom has its sizes.

    Raises:
        ConfigError: when the line names no framework, or the framework would refuse it.
    """
    from tracer.frameworks import from_line

    line = query.get("line", "")
    if len(line) > MAX_LINE:
        raise ConfigError("line", "this", f"is over {MAX_LINE:,} characters", "paste one launch line")
    gpus = query.get("gpus", "")
    rest = {key: text for key, text in query.items() if key not in ("line", "gpus")}
    layout = from_line(line, gpus=int(gpus) if gpus.isdigit() else None, model=_model(rest))
    return {
        "framework": layout.framework,
        "keys": {"scenario": "", "name": f"{layout.framework} launch", **_keys(layout.scenario.to_dict())},
        "warnings": [str(note) for note in layout.warnings],
        "unknown": list(layout.unknown_flags),
    }


def _keys(tables: dict[str, Any]) -> dict[str, str]:
    return {key: text for key, text in flatten(tables).items() if key not in ("schema", "name")}


def _model(query: dict[str, str]) -> ModelSpec | None:
    """The model of the page's scenario, when that works."""
    try:
        return scenario_of(query).model
    except ConfigError:
        return None

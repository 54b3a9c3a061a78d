"""Scenario files: TOML and JSON text in, and presets by name.

Scenarios that ship with the package, each with its source.

Scenarios as plain tables and as TOML, every key written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError, nearest
from tracer.scenario.read import DTYPE_KEYS, PLAN_KEYS, SIZES, TOKEN_KEYS, scenario_from_dict

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario


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
    from tracer.model.configs import read_config

    return read_config(parse_text(read_text(path, "model.config"), ".json")).spec


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
    path = Path(source)
    if path.suffix.lower() in SUFFIXES:
        return scenario_from_file(path)
    return preset(str(source))


Table = dict[str, Any]


def scenario_to_dict(scenario: Scenario) -> Table:
    """A scenario as JSON values, every key present; ``scenario_from_dict`` gives an equal one back."""
    mesh, cluster, plan, token = scenario.mesh, scenario.cluster, scenario.plan, scenario.token
    return {
        "schema": 1,
        "name": scenario.name,
        "source": scenario.source,
        "phase": scenario.phase,
        "seed": scenario.seed,
        "cluster": {
            "nodes": cluster.nodes,
            "gpus_per_node": cluster.gpus_per_node,
            "nodes_per_island": cluster.nodes_per_island,
            "hardware": cluster.hardware,
            "nvlink_bytes_per_s": cluster.nvlink.bytes_per_s,
            "nvlink_latency_s": cluster.nvlink.latency_s,
            "ib_bytes_per_s": cluster.ib.bytes_per_s,
            "ib_latency_s": cluster.ib.latency_s,
            "placement": None if cluster.placement is None else [list(pair) for pair in cluster.placement],
        },
        "model": None if scenario.model is None else scenario.model.to_dict(),
        "mesh": {
            "order": "-".join(mesh.dense.names),
            **{axis: mesh.size_of(axis) for axis in SIZES},
            "expert_order": mesh.expert_order,
            "strict": mesh.strict,
            **{key: _plain(getattr(plan, key)) for key in PLAN_KEYS},
        },
        "placement": _placement_to_dict(scenario),
        "dtype": {key: getattr(scenario.dtype, key) for key in DTYPE_KEYS},
        "token": {key: getattr(token, key) for key in TOKEN_KEYS},
        "picks": {str(layer): list(experts) for layer, experts in scenario.picks},
    }


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value


def _placement_to_dict(scenario: Scenario) -> Table | None:
    placement = scenario.placement
    if placement is None:
        return None
    return {
        "kind": placement.kind,
        "remainder": placement.remainder,
        "slots": None if placement.slots is None else list(placement.slots),
        "slots_by_layer": {str(layer): list(entry.slots or ()) for layer, entry in scenario.layer_placements},
    }


def scenario_to_toml(scenario: Scenario) -> str:
    """A scenario as TOML; keys without a value are left out."""
    import tomli_w

    return tomli_w.dumps(_without_nulls(scenario_to_dict(scenario)))


def _without_nulls(table: Table) -> Table:
    kept = {}
    for key, value in table.items():
        if isinstance(value, dict):
            value = _without_nulls(value) or None
        if value is not None:
            kept[key] = value
    return kept

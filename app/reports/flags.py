"""What launches a framework, pasted or sent as a file, turned into keys of an address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.query.address import flatten
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.frameworks.opening import LaunchedMesh

MAX_LINE = 8_192
MAX_BYTES = 262_144


def flags_report(query: dict[str, str]) -> dict[str, Any]:
    """A launch line in the address itself; see :func:`launch_report`.

    Raises:
        ConfigError: as :func:`launch_report`.
    """
    line = query.get("line", "")
    if len(line) > MAX_LINE:
        raise ConfigError("line", "this", f"is over {MAX_LINE:,} characters", "paste one launch line")
    return launch_report(line, {**query, "model": query.get("launch_model", "")})


def launch_report(text: str, asked: Mapping[str, str]) -> dict[str, Any]:
    """Every mesh of a launch as keys for the address, with what was read and what the rules warn of.

    ``asked`` may have ``gpus``, ``name`` (of the file) and ``model`` (one that ships, in place of the
    launch's own). A launch without a model that is known gives keys without one: the page asks for it.

    Raises:
        ConfigError: when the text launches no framework, or the framework would refuse it.
    """
    from tracer.frameworks.launch.door import read_launch
    from tracer.frameworks.opening import Asked, meshes_of
    from tracer.model.configs import model_preset, model_preset_names

    gpus, model = asked.get("gpus", ""), asked.get("model", "")
    launch = read_launch(text, filename=asked.get("name") or None)
    meshes = meshes_of(
        launch,
        Asked(
            gpus=int(gpus) if gpus.isascii() and gpus.isdigit() and len(gpus) < 12 else None,
            model=model_preset(model) if model else None,
        ),
    )
    found = [_mesh(mesh, model) for mesh in meshes]
    return {"given": str(launch), "models": list(model_preset_names()), "meshes": found}


def _mesh(mesh: LaunchedMesh, asked_model: str) -> dict[str, Any]:
    """One mesh: what it is in a line, its keys, and its warnings."""
    from tracer.frameworks.registry import framework

    layout = mesh.layout
    title = framework(layout.framework).title
    tables = layout.scenario.to_dict()
    has_model = isinstance(tables.get("model"), dict)
    model = asked_model or layout.model or _own_name(tables)
    parts = [title, f"{layout.world_size:,} GPUs", *([model] if has_model else [])]
    return {
        "role": mesh.role,
        "said": ", ".join(parts),
        "framework": layout.framework,
        "asks": "" if has_model else _ask(layout.model),
        "keys": {"scenario": "", "name": f"{title} launch", **_keys(tables, model)},
        "warnings": [note.to_dict() for note in layout.warnings],
        "unknown": list(layout.unknown_flags),
    }


def _own_name(tables: Mapping[str, Any]) -> str:
    model = tables.get("model")
    return str(model.get("name") or "a model of its own") if isinstance(model, dict) else ""


def _ask(named: str) -> str:
    """What the page says where the launch gives no model that is known here."""
    if not named:
        return "The launch names no model: choose one to follow a token."
    return f"The model {named} is not one that ships: choose one with its layers and experts."


def _keys(tables: dict[str, Any], model: str) -> dict[str, str]:
    """Keys of the address; a model that ships goes by its name, as the page's own control gives it."""
    from tracer.model.configs import model_preset, model_preset_names

    if model in model_preset_names() and tables["model"] == model_preset(model).to_dict():
        tables = {**tables, "model": {"preset": model}}
    return {key: text for key, text in flatten(tables).items() if key not in ("schema", "name")}

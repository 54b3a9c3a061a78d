"""What most commands start from: a preset, a scenario file or a config.json, changed by flags."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tracer.scenario.scenario import BareScenario, Scenario

UNCHANGED_SOURCE = "tokentrip.source"
_SIZE_FLAGS = ("tp", "cp", "dp", "pp", "ep", "etp")
_FLAG_KEYS = {
    **{name: ("mesh", name) for name in (*_SIZE_FLAGS, "order")},
    "nodes": ("cluster", "nodes"),
    "gpus_per_node": ("cluster", "gpus_per_node"),
    "replica": ("token", "replica"),
    "position": ("token", "position"),
    "prompt": ("token", "prompt"),
    "gpu": ("token", "gpu"),
}
_HUGGING_FACE_KEYS = ("model_type", "architectures")


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from tracer.scenario.files import preset_names

    names = [CompletionItem(name) for name in preset_names() if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def scenario_argument(function: Callable[..., None]) -> Callable[..., None]:
    """The SCENARIO argument and the flags that change it; the command gets a ``scenario`` with its model."""
    return _scenario_argument(function, read_scenario)


def late_position_argument(function: Callable[..., None]) -> Callable[..., None]:
    """The same for a command whose ``picks`` file says how long the prompt is.

    With such a file the position is not laid over the scenario: the command gets it as ``position``, and the
    length that was asked for as ``prompt``.
    """
    return _scenario_argument(function, read_scenario, late=("position", "prompt"))


def bare_scenario_argument(function: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that asks for groups and coordinates alone: there may be no model."""
    return _scenario_argument(function, read_bare_scenario)


def _scenario_argument(
    function: Callable[..., None], read: Callable[..., BareScenario], late: tuple[str, ...] = ()
) -> Callable[..., None]:
    def wrapped(
        source: str, overrides: tuple[str, ...], phase: str | None, seed: int | None, **options: Any
    ) -> None:
        """The command, with the scenario in the place of what names it."""
        flags = {name: options.pop(name) for name in _FLAG_KEYS}
        given = {name: flags[name] if options.get("picks") is not None else None for name in late}
        flags |= dict.fromkeys([name for name, value in given.items() if value is not None])
        scenario = read(source, flags, overrides, phase=phase, seed=seed)
        plain = not overrides and {phase, seed, *flags.values(), *given.values()} == {None}
        click.get_current_context().meta[UNCHANGED_SOURCE] = source if plain else None
        function(scenario=scenario, **options, **given)

    wrapped.__doc__, wrapped.__name__ = function.__doc__, function.__name__
    wrapped.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    decorated: Callable[..., None] = wrapped
    for option in reversed(_options()):
        decorated = option(decorated)
    return decorated


def _options() -> list[Callable[[Callable[..., None]], Callable[..., None]]]:
    def number(name: str, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """An option that takes a whole number."""
        return click.option(f"--{name.replace('_', '-')}", name, type=int, help=text)

    return [
        click.argument("source", metavar="SCENARIO", shell_complete=_complete),
        *(number(name, f"Size of axis {name}.") for name in _SIZE_FLAGS),
        click.option("--order", help="Dense axes, fastest first, such as tp-cp-dp-pp."),
        number("nodes", "Nodes of the cluster."),
        number("gpus_per_node", "GPUs in a node."),
        number("replica", "Replica that serves the prompt."),
        number("position", "Position to follow: in the prompt, or in decode after it."),
        number("prompt", "Length of the prompt."),
        number("gpu", "Follow the first position that lands on this GPU."),
        click.option("--phase", help="prefill or decode."),
        click.option("--seed", type=int, help="Seed of picks that are not given."),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="TABLE.KEY=VALUE",
            help="Any key: --set mesh.sp=off --set 'picks.1=[5, 27]'.",
        ),
    ]


def read_scenario(
    source: str,
    flags: dict[str, Any],
    overrides: tuple[str, ...],
    *,
    phase: str | None = None,
    seed: int | None = None,
) -> Scenario:
    """A scenario from a preset's name or a file, with flags laid over it.

    Raises:
        ConfigError: when the source cannot be read, or the result breaks a rule or has no model.
    """
    from tracer.scenario.scenario import with_model

    return with_model(read_bare_scenario(source, flags, overrides, phase=phase, seed=seed))


def read_bare_scenario(
    source: str,
    flags: dict[str, Any],
    overrides: tuple[str, ...],
    *,
    phase: str | None = None,
    seed: int | None = None,
) -> BareScenario:
    """The same, where the scenario may have no model.

    Raises:
        ConfigError: when the source cannot be read, or the result breaks a rule.
    """
    from tracer.scenario.files import load_bare_scenario
    from tracer.scenario.scenario import BareScenario

    changes = {key: value for key, value in flags.items() if value is not None}
    if not changes and not overrides and phase is None and seed is None and not _is_config(source):
        return load_bare_scenario(source)
    tables = _tables(source, phase)
    for name, value in changes.items():
        table, key = _FLAG_KEYS[name]
        _change(tables, table, key, value)
    for text in overrides:
        _override(tables, text)
    tables |= {key: value for key, value in (("phase", phase), ("seed", seed)) if value is not None}
    return BareScenario.from_dict(tables)


def _is_config(source: str) -> bool:
    return source.endswith(".json") and bool(_hugging_face(source))


def _hugging_face(source: str) -> dict[str, Any] | None:
    """The Hugging Face config in a .json file, or None when it holds a scenario."""
    from tracer.scenario.files import read_text
    from tracer.scenario.read import parse_text

    data = parse_text(read_text(Path(source), "scenario"), ".json", source)
    return data if isinstance(data, dict) and any(key in data for key in _HUGGING_FACE_KEYS) else None


def _tables(source: str, phase: str | None) -> dict[str, Any]:
    """The scenario's tables in a phase, ready to be changed; derived sizes are left open."""
    from tracer.errors import word_of
    from tracer.scenario.files import load_bare_scenario
    from tracer.scenario.token import Phase

    if source.endswith(".json") and (config := _hugging_face(source)):
        from tracer.model.configs import read_config

        read = read_config(config)
        for warning in read.warnings:
            click.echo(f"warning: {warning}", err=True)
        return {"model": read.spec.to_dict()}
    scenario = load_bare_scenario(source)
    if phase is not None:
        scenario = scenario.with_phase(word_of("phase", phase, Phase))
    tables = scenario.to_dict()
    tables["mesh"]["edp"] = None
    return tables


def _change(tables: dict[str, Any], table: str, key: str, value: Any) -> None:
    """Set one key; what followed from the old value, or excludes the new one, is dropped."""
    entries = tables.get(table)
    if not isinstance(entries, dict):
        entries = tables[table] = {}
    if table == "cluster" and key == "hardware":
        _drop_hardware(entries)
    entries[key] = value
    if table == "mesh" and key in ("tp", "cp", "dp", "pp"):
        tables.setdefault("cluster", {}).update(nodes=None)
    if table == "token":
        dropped = {"gpu": ("position", "replica"), "position": ("gpu",)}.get(key, ())
        entries.update(dict.fromkeys(dropped))


def _drop_hardware(cluster: dict[str, Any]) -> None:
    """Forget the links and figures of the hardware, and its nodes where the cluster's are those."""
    from tracer.mesh.hardware import GPU_FIGURES, hardware_preset

    named = cluster.get("hardware")
    if named is not None:
        old = hardware_preset(named)
        shape = (old.gpus_per_node, old.nodes_per_island)
        if (cluster.get("gpus_per_node"), cluster.get("nodes_per_island")) == shape:
            cluster.update(dict.fromkeys(("nodes", "gpus_per_node", "nodes_per_island")))
    cluster.update(dict.fromkeys(("nvlink_bytes_per_s", "ib_bytes_per_s", *GPU_FIGURES)))


def _override(tables: dict[str, Any], text: str) -> None:
    """Apply one ``--set TABLE.KEY=VALUE``; the value is TOML, or else plain text."""
    import tomllib

    name, equals, raw = text.partition("=")
    table, dot, key = name.strip().partition(".")
    if not equals or not dot or not key:
        raise ConfigError("--set", text, "must be TABLE.KEY=VALUE", "write --set mesh.sp=off")
    try:
        value = tomllib.loads(f"value = {raw}")["value"]
    except (ValueError, RecursionError):  # no TOML, or numbers and nesting beyond what is read
        value = raw.strip()
    _change(tables, table, key, value)

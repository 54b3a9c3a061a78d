"""``tokentrip from``: launch flags of a framework to its groups, and to a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracer.scenario.scenario import BareScenario


@click.command("from")
@click.argument("framework")
@click.option("--gpus", type=int, help="GPUs in all; left out, the launch line or the flags say it.")
@click.option("--gpus-per-node", type=int, help="GPUs of a node [the launcher's count, else 8].")
@click.option("--framework-version", "version", help="Version, where the layout changed with it (1.1.0).")
@click.option("--model", help="config.json, or the name of a model that ships: places experts, checks heads.")
@click.option("--file", type=click.Path(path_type=Path), help="The framework's YAML, TOML or JSON file.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the scenario here (.toml or .json).")
@click.option("--strict", is_flag=True, help="Refuse flags that are not known here.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def from_command(
    framework: str,
    gpus: int | None,
    gpus_per_node: int | None,
    version: str | None,
    model: str | None,
    file: Path | None,
    save: Path | None,
    strict: bool,
    as_json: bool,
    flags: tuple[str, ...],
) -> None:
    """Print the groups that FRAMEWORK makes of launch FLAGS, which follow a double dash.

    FRAMEWORK is megatron, vllm, sglang, tensorrt-llm, torchtitan, deepspeed or nanotron. FLAGS may be a
    whole shell line with its launcher. What the framework would refuse is refused, with a flag that works.

    \b
    Example:
      tokentrip from vllm --gpus 16 -- -tp 2 -pp 2 -dp 4 --enable-expert-parallel
      tokentrip from megatron -- torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py
    """
    from app.commands.common.model_source import read_model
    from tracer.frameworks import from_flags

    tables = None
    if file is not None:
        from tracer.frameworks.config_files import read_framework_file

        tables = read_framework_file(file)
    layout = from_flags(
        framework,
        flags,
        gpus=gpus,
        gpus_per_node=gpus_per_node,
        version=version,
        model=read_model(model),
        strict=strict,
        file=tables,
    )
    if save is not None:
        _save(save, layout.scenario)
    if as_json:
        import json

        click.echo(json.dumps(layout.to_dict()))
    else:
        click.echo(str(layout))


def _save(path: Path, scenario: BareScenario) -> None:
    """Write a scenario whole; the suffix says how."""
    import json

    from app.exports.files import write_whole
    from tracer.errors import ConfigError

    suffix = path.suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ConfigError("--save", str(path), "must end in .toml or .json", f"try {path.stem}.toml")
    write_whole(path, scenario.to_toml() if suffix == ".toml" else json.dumps(scenario.to_dict(), indent=2))

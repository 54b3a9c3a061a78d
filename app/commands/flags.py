"""``tokentrip flags``: the launch flags of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import bare_scenario_argument
from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.scenario import BareScenario


@click.command("flags")
@bare_scenario_argument
@click.option("--for", "framework", required=True, help="The framework: megatron, vllm, sglang, ...")
@json_option()
def flags_command(scenario: BareScenario, framework: str, as_json: bool) -> None:
    """Write the launch flags of a scenario, where the framework can make its mesh.

    The flags are read back and held against the scenario: groups that differ are refused, other choices that
    differ are warned of.

    \b
    Example:
      tokentrip flags six-cuts --for megatron
    """
    from tracer.frameworks.writing import launch_flags

    found = launch_flags(scenario, framework)
    if as_json:
        print_json(found.to_dict())
        return
    click.echo(str(found))
    for note in found.warnings:
        click.echo(f"! {note.message}; {note.fix}", err=True)

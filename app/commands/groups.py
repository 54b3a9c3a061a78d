"""``tokentrip groups``: every group of the mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import bare_scenario_argument
from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.scenario import BareScenario


@click.command("groups")
@bare_scenario_argument
@click.option("--axis", help="One axis (tp cp dp pp etp ep edp) or replica; all when left out.")
@json_option()
def groups_command(scenario: BareScenario, axis: str | None, as_json: bool) -> None:
    """Print every group of every axis, and every replica.

    \b
    Example:
      tokentrip groups six-cuts --axis ep
    """
    from tracer.memory.reports import groups_report

    report = groups_report(scenario, axis)
    if as_json:
        print_json(report)
        return
    for name, groups in report["groups"].items():
        click.echo(f"{name}: {len(groups):,} groups of {len(groups[0])}")
        for members in groups:
            click.echo("  " + " ".join(map(str, members)))

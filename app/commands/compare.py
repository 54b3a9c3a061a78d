"""``tokentrip compare``: two scenarios side by side."""

from __future__ import annotations

import click

from app.commands.common.tables import json_option, print_json


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="TABLE.KEY=VALUE",
    help="Any key, set in B alone: --set mesh.order=tp-cp-pp-dp.",
)
@json_option()
def compare_command(a: str, b: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Follow the same token through two scenarios: totals, axes, and every hop that differs.

    A and B are presets or scenario files.

    \b
    Example:
      tokentrip compare six-cuts six-cuts-pp-inside-dp
      tokentrip compare six-cuts six-cuts --set mesh.sp=off
    """
    from app.commands.common.scenario_source import read_scenario
    from tracer.trip.compare import compare_scenarios

    compared = compare_scenarios(read_scenario(a, {}, ()), read_scenario(b, {}, overrides))
    if as_json:
        print_json(compared.to_dict())
    else:
        click.echo(str(compared))

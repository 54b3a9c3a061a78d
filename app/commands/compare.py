"""``tokentrip compare``: two scenarios side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.timing.pass_verdict import PassVerdict


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

    one, other = read_scenario(a, {}, ()), read_scenario(b, {}, overrides)
    compared, passes = compare_scenarios(one, other), _passes(one, other)
    if as_json:
        print_json(compared.to_dict() | {"pass": passes and passes.to_dict()})
    else:
        click.echo(str(compared))
        if passes is not None:
            click.echo(f"\n{passes}")


def _passes(a: Scenario, b: Scenario) -> PassVerdict | None:
    """Both passes timed; None where a size or a rate that is needed is not stated."""
    from tracer.errors import ConfigError
    from tracer.timing.pass_verdict import compare_passes

    try:
        return compare_passes(a, b)
    except ConfigError:
        return None

"""``tokentrip lockstep``: one step of replicas with unequal loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


@click.command("lockstep")
@scenario_argument
@click.option("--loads", required=True, metavar="A,B,…", help="Work of each replica in a layer; 0 is idle.")
@click.option("--moe", default=0.0, show_default=True, help="Work of everyone in a MoE layer.")
@click.option("--dummy", default=0.0, show_default=True, help="Work of a dummy batch in a layer.")
@json_option()
def lockstep_command(scenario: Scenario, loads: str, moe: float, dummy: float, as_json: bool) -> None:
    """Print which replica waits for which at the MoE layers, and what it costs.

    \b
    Example:
      tokentrip lockstep six-cuts --loads 1,2,0,4 --dummy 0.1
    """
    from tracer.serving.lockstep import lockstep

    step = lockstep(scenario, _numbers(loads), moe=moe, dummy=dummy)
    if as_json:
        print_json(step.to_dict(), 1)
    else:
        click.echo(str(step))


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(
            "--loads", text, "must be numbers joined by commas", "write --loads 1,2,0,4"
        ) from None

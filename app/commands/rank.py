"""``tokentrip rank``: one GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import bare_scenario_argument
from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.scenario import BareScenario


@click.command("rank")
@bare_scenario_argument
@click.argument("rank", type=int)
@json_option()
def rank_command(scenario: BareScenario, rank: int, as_json: bool) -> None:
    """Print what one GPU is, who its partners are, and what it holds.

    \b
    Example:
      tokentrip rank six-cuts 11
    """
    from tracer.memory.reports import rank_report, rank_text

    if as_json:
        print_json(rank_report(scenario, rank), 1)
    else:
        click.echo(rank_text(scenario, rank))

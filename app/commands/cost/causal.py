"""``tokentrip causal``: causal attention's work on each CP rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import bare_scenario_argument
from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.scenario import BareScenario


@click.command("causal")
@bare_scenario_argument
@json_option()
def causal_command(scenario: BareScenario, as_json: bool) -> None:
    """Compare causal attention's work on each CP rank: zigzag against contiguous.

    \b
    Example:
      tokentrip causal six-cuts --cp 4
    """
    from tracer.memory.causal_work import causal_work_text, compare_causal_work

    if as_json:
        works = {name: work.to_dict() for name, work in compare_causal_work(scenario).items()}
        print_json({"schema": 1, "prompt": scenario.token.prompt, "rules": works}, 1)
    else:
        click.echo(causal_work_text(scenario))

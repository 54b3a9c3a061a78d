"""``tokentrip phases``: prefill against decode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


@click.command("phases")
@scenario_argument
@click.option("--decode", metavar="SCENARIO", help="Decode on this scenario's mesh instead of the same.")
@json_option()
def phases_command(scenario: Scenario, decode: str | None, as_json: bool) -> None:
    """Print what each axis does in prefill and what it becomes in decode.

    \b
    Example:
      tokentrip phases six-cuts
      tokentrip phases deepseek-v3-prefill-ep32 --decode deepseek-v3-decode-ep144
    """
    from tracer.scenario.files import load_scenario
    from tracer.serving.phases import phase_table

    table = phase_table(scenario, load_scenario(decode) if decode is not None else None)
    if as_json:
        print_json(table.to_dict(), 1)
    else:
        click.echo(str(table))

"""``tokentrip generate``: a whole generation, from prefill to the last decode step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


@click.command("generate")
@scenario_argument
@click.option("--steps", default=4, show_default=True, help="Decode steps after prefill.")
@click.option("--decode", metavar="SCENARIO", help="A decode pool that the K/V moves to.")
@json_option()
def generate_command(scenario: Scenario, steps: int, decode: str | None, as_json: bool) -> None:
    """Follow a request: prefill, the K/V's way to a decode pool, and decode steps, with running totals.

    \b
    Example:
      tokentrip generate six-cuts --steps 4
      tokentrip generate deepseek-v3-prefill-ep32 --decode deepseek-v3-decode-ep144
    """
    from tracer.scenario.files import load_scenario
    from tracer.serving.generation import generate

    generation = generate(scenario, steps, load_scenario(decode) if decode is not None else None)
    if as_json:
        print_json(generation.to_dict(), 1)
    else:
        click.echo(str(generation))

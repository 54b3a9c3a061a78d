"""``tokentrip trip``: the trip log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


@click.command("trip")
@scenario_argument
@click.option("--tokens", help="Follow several: positions, runs, replica:position, such as 0,5,40-47,3:0.")
@click.option("--json", "as_json", is_flag=True, help="The whole trip as JSON.")
def trip_command(scenario: Scenario, tokens: str | None, as_json: bool) -> None:
    """Follow one token and print its trip log.

    SCENARIO is a preset, a .toml or .json scenario, or a Hugging Face config.json with mesh flags.

    \b
    Example:
      tokentrip trip six-cuts
      tokentrip trip config.json --tp 8 --gpus-per-node 8 --json
      tokentrip trip six-cuts --tokens 0,40,3:40
    """
    if tokens is not None:
        _several(scenario, tokens, as_json)
        return
    from tracer.trip.trip import take_trip

    trip = take_trip(scenario)
    if as_json:
        from tracer.trip.export.tables import to_json

        click.echo(to_json(trip), nl=False)
    else:
        click.echo(str(trip))


def _several(scenario: Scenario, tokens: str, as_json: bool) -> None:
    """Several tokens on one map."""
    from app.query.token_names import read_token_names
    from tracer.trip.several import take_trips

    trips = take_trips(scenario, read_token_names(tokens, scenario.replica))
    if as_json:
        import json

        click.echo(json.dumps(trips.to_dict()))
    else:
        click.echo(str(trips))

"""``tokentrip trip``: the trip log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.trip.trip import Trip
    from tracer.trip.trips import Trips


@click.command("trip")
@scenario_argument
@click.option("--tokens", help="Follow several: positions, runs, replica:position, such as 0,5,40-47,3:0.")
@json_option("The whole trip as JSON.")
def trip_command(scenario: Scenario, tokens: str | None, as_json: bool) -> None:
    """Follow one token and print its trip log.

    SCENARIO is a preset, a .toml or .json scenario, or a Hugging Face config.json with mesh flags.

    \b
    Example:
      tokentrip trip six-cuts
      tokentrip trip config.json --tp 8 --gpus-per-node 8 --json
      tokentrip trip six-cuts --tokens 0,40,3:40
    """
    from app.query.token_names import read_token_names
    from tracer.trip.export.tables import to_json
    from tracer.trip.trip import take_trip
    from tracer.trip.trips import take_trips

    trip: Trip | Trips
    if tokens is None:
        trip = take_trip(scenario)
    else:
        trip = take_trips(scenario, read_token_names(tokens, scenario.replica))
    if not as_json:
        click.echo(str(trip))
    elif tokens is None:
        click.echo(to_json(trip), nl=False)
    else:
        print_json(trip.to_dict())

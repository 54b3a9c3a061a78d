"""``tokentrip trip``: the trip log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.commands.common.scenario_source import late_position_argument
from app.commands.common.tables import json_option, print_json

FORMATS = ["auto", "plain", "vllm", "sglang", "megatron", "logits"]

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.trip.trip import Trip
    from tracer.trip.trips import Trips

    Following = Callable[[Scenario], Scenario]


@click.command("trip")
@late_position_argument
@click.option("--tokens", help="Follow several: positions, runs, replica:position, such as 0,5,40-47,3:0.")
@click.option(
    "--picks",
    type=click.Path(exists=True, path_type=Path),
    help="Follow recorded picks: a vLLM or SGLang response, .pt, .npy [tokens, layers, k]; see --position.",
)
@click.option("--request", type=int, default=0, show_default=True, help="Which request of the file, from 0.")
@click.option("--format", "layout", type=click.Choice(FORMATS), default="auto", help="What the file holds.")
@json_option("The whole trip as JSON.")
def trip_command(scenario: Scenario, tokens: str | None, as_json: bool, **options: Any) -> None:
    """Follow one token and print its trip log.

    SCENARIO is a preset, a .toml or .json scenario, or a Hugging Face config.json with mesh flags.

    \b
    Example:
      tokentrip trip six-cuts
      tokentrip trip config.json --tp 8 --gpus-per-node 8 --json
      tokentrip trip six-cuts --tokens 0,40,3:40
      tokentrip trip deepseek-v3-prefill-ep32 --picks response.json --position 17
    """
    from app.query.token_names import read_token_names
    from tracer.trip.export.tables import to_json
    from tracer.trip.trip import take_trip
    from tracer.trip.trips import take_trips

    trip: Trip | Trips
    recorded = note = None
    if options["picks"] is not None:
        scenario, recorded, note = _recorded(scenario, {**options, "tokens": tokens})
    if tokens is None:
        trip = take_trip(scenario if recorded is None else recorded(scenario))
    else:
        trip = take_trips(scenario, read_token_names(tokens, scenario.replica), recorded)
    if not as_json:
        click.echo(str(trip))
        if recorded is not None:
            click.echo(f"picks as recorded in {options['picks'].name}, request {options['request']}")
            if note is not None:
                click.echo(f"note: {note}")
    elif tokens is None:
        click.echo(to_json(trip), nl=False)
    else:
        print_json(trip.to_dict())


def _recorded(scenario: Scenario, options: dict[str, Any]) -> tuple[Scenario, Following, str | None]:
    """The scenario with the recorded request as its prompt, what lays a token's picks over it, and a note."""
    from tracer.batch.picks.files import read_requests
    from tracer.batch.picks.recording import follow_recording, phase_note, with_length
    from tracer.errors import ConfigError

    requests = read_requests(options["picks"], scenario.model, layout=options["layout"])
    number = options["request"]
    if not 0 <= number < len(requests):
        rule = f"must be from 0 to {len(requests) - 1}: the file holds {len(requests)}"
        raise ConfigError("--request", number, rule, "try 0")
    request = requests[number]
    placed = with_length(scenario, request, position=options["position"], prompt=options["prompt"])
    note = phase_note(placed, request) if options["tokens"] is None else None
    return placed, lambda following: follow_recording(following, request), note

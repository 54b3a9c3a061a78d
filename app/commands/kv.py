"""``tokentrip kv``: what a token leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.scenario_source import scenario_argument

if TYPE_CHECKING:
    from tracer.scenario import Scenario


@click.command("kv")
@scenario_argument
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def kv_command(scenario: Scenario, as_json: bool) -> None:
    """Print who keeps the token's K/V, layer by layer, and the room it takes.

    \b
    Example:
      tokentrip kv six-cuts
      tokentrip kv six-cuts --phase decode --position 65
    """
    if not as_json:
        from tracer.kv_text import kv_text

        click.echo(kv_text(scenario))
        return
    import json

    from tracer.kv_owners import kv_owners
    from tracer.kv_room import kv_room

    room = [entry.to_dict() for entry in kv_room(scenario)]
    click.echo(json.dumps({"schema": 1, **kv_owners(scenario).to_dict(), "room": room}, indent=1))

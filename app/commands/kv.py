"""``tokentrip kv``: what a token leaves behind, and its way to a decode pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.scenario_source import scenario_argument

if TYPE_CHECKING:
    from tracer.scenario import Scenario


@click.command("kv")
@scenario_argument
@click.option("--to", "decode", metavar="SCENARIO", help="A decode pool: print what moves there instead.")
@click.option("--whole", is_flag=True, help="With --to: the whole prompt's K/V, not the token's.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def kv_command(scenario: Scenario, decode: str | None, whole: bool, as_json: bool) -> None:
    """Print who keeps the token's K/V, layer by layer, and the room it takes.

    \b
    Example:
      tokentrip kv six-cuts
      tokentrip kv six-cuts --phase decode --position 65
      tokentrip kv six-cuts --to decode-pool.toml --whole
    """
    if decode is not None:
        _transfer(scenario, decode, whole, as_json)
    elif as_json:
        import json

        from tracer.kv_owners import kv_owners
        from tracer.kv_room import kv_room

        room = [entry.to_dict() for entry in kv_room(scenario)]
        click.echo(json.dumps({"schema": 1, **kv_owners(scenario).to_dict(), "room": room}, indent=1))
    else:
        from tracer.kv_text import kv_text

        click.echo(kv_text(scenario))


def _transfer(scenario: Scenario, decode: str, whole: bool, as_json: bool) -> None:
    from tracer.last_trip import last_trip
    from tracer.pools import Pools
    from tracer.presets import load_scenario

    pools = Pools.join(scenario, load_scenario(decode))
    moved = last_trip(pools, None if whole else pools.prefill.position)
    if as_json:
        import json

        click.echo(json.dumps(moved.to_dict(), indent=1))
    else:
        click.echo(str(moved))

"""``tokentrip kv``: the K/V of a token, and its hand-over to a decode pool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import UNCHANGED_SOURCE, scenario_argument
from app.commands.common.tables import json_option, print_json
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.serving.kv_handover import KvHandover


@click.command("kv")
@scenario_argument
@click.option("--to", "decode", metavar="SCENARIO", help="A decode pool: print what moves there instead.")
@click.option("--whole", is_flag=True, help="With --to: the whole prompt's K/V, not the token's.")
@click.option(
    "--draw",
    type=click.Path(path_type=Path),
    help="With --to: write it as a picture too (.svg, .png; .json has the numbers).",
)
@json_option()
def kv_command(scenario: Scenario, decode: str | None, whole: bool, draw: Path | None, as_json: bool) -> None:
    """Print who keeps the token's K/V, layer by layer, and the room it takes.

    With --to, print which GPU sends which heads and layers to which GPU of a decode pool. A picture drawn
    of it carries both scenarios: ``tokentrip export --check`` says when it is out of date.

    \b
    Example:
      tokentrip kv six-cuts
      tokentrip kv six-cuts --phase decode --position 65
      tokentrip kv six-cuts --to decode-pool.toml --whole
      tokentrip kv six-cuts --to six-cuts-decode --whole --draw last-trip.svg
    """
    if decode is None and whole:
        rule = "is about what moves to a decode pool, and none is given"
        raise ConfigError("--whole", True, rule, "add --to SCENARIO")
    if decode is None and draw is not None:
        raise ConfigError("--draw", str(draw), "needs a decode pool to draw the way to", "add --to SCENARIO")
    if decode is not None:
        _transfer(scenario, decode, whole, draw, as_json)
    elif as_json:
        from tracer.memory.kv_owners import kv_owners
        from tracer.memory.kv_room import kv_room

        room = [entry.to_dict() for entry in kv_room(scenario)]
        print_json({"schema": 1, **kv_owners(scenario).to_dict(), "room": room}, 1)
    else:
        from tracer.memory.kv_room import kv_text

        click.echo(kv_text(scenario))


def _transfer(scenario: Scenario, decode: str, whole: bool, draw: Path | None, as_json: bool) -> None:
    from tracer.scenario.files import load_scenario
    from tracer.serving.kv_handover import kv_handover_of

    pool = load_scenario(decode)
    moved = kv_handover_of(scenario, pool, whole=whole)
    if as_json:
        print_json(moved.to_dict(), 1)
    else:
        click.echo(str(moved))
    if draw is not None:
        _draw(moved, draw, (scenario, pool), decode, whole)


def _draw(
    moved: KvHandover, target: Path, scenarios: tuple[Scenario, Scenario], decode: str, whole: bool
) -> None:
    """Write the picture with the two scenarios in it."""
    from app.commands.export import beside
    from app.exports.files import write_whole
    from app.exports.pool_picture import draw_pools, handover_totals
    from app.exports.stamp import sealed

    source = click.get_current_context().meta[UNCHANGED_SOURCE]
    values = {
        "source": beside(source, target),
        "hop": None,
        "scenario": scenarios[0].to_dict(),
        "log": handover_totals(moved),
        "decode_source": beside(decode, target),
        "decode": scenarios[1].to_dict(),
        "whole": whole,
    }
    picture = draw_pools(moved, target)
    content = sealed(
        picture, target.suffix.lower(), values, lambda: draw_pools(moved, target.with_suffix(".svg"))
    )
    write_whole(target, content)
    click.echo(f"wrote {target}", err=True)

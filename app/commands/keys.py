"""``tokentrip keys``: what a scenario file may say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.keys import ScenarioKey


@click.command("keys")
@click.argument("word", required=False, metavar="[TABLE|KEY|WORD]")
@json_option()
def keys_command(word: str | None, as_json: bool) -> None:
    """List the keys of a scenario file: type, default, meaning and an example.

    WORD keeps the keys of a table (mesh, cluster, model, placement, dtype, token), the key of that name, or
    those whose meaning has the word.

    \b
    Examples:
      tokentrip keys mesh
      tokentrip keys chunks
      tokentrip keys latency
    """
    from tracer.scenario.keys import default_text, scenario_keys

    found = [each for each in scenario_keys() if word is None or _about(each, word.lower())]
    if not found:
        from tracer.errors import ConfigError, nearest

        known = [name for each in scenario_keys() for name in (each.path, each.key)]
        raise ConfigError("WORD", word, "is in no key of a scenario", nearest(str(word), known))
    if as_json:
        print_json({"schema": 1, "keys": [each.to_dict() for each in found]})
        return
    for each in found:
        default = "" if each.default in (None, ()) else f"; default {default_text(each.default)}"
        unit = f", {each.unit}" if each.unit else ""
        click.echo(click.style(each.path, bold=True) + f"  ({each.type}{unit}{default})")
        click.echo("".join(f"    {line}\n" for line in _wrapped(each.meaning)), nl=False)
        click.echo("".join(f"    e.g. {line}\n" for line in each.example.splitlines()), nl=False)


def _about(each: ScenarioKey, word: str) -> bool:
    if word in ("mesh", "cluster", "model", "placement", "dtype", "token"):
        return each.table == word
    return word in (each.key, each.path) or word in each.meaning.lower() or word in each.key


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 76)

"""``tokentrip export``: the trip as a picture, or for another tool."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.commands.check import check_command, fill_command
from app.commands.common.scenario_source import UNCHANGED_SOURCE, scenario_argument
from app.commands.common.tables import json_option, print_json
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


class _ExportCommand(click.Command):
    """``export SCENARIO``; with ``--check`` or ``--fill`` the arguments are files instead."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of what was asked: an export, a check, or a filling of documents."""
        for flag, command in (("--check", check_command), ("--fill", fill_command)):
            if flag in args:
                rest = [word for word in args if word != flag]
                return command.make_context(f"{info_name} {flag}", rest, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("export", cls=_ExportCommand)
@scenario_argument
@click.option(
    "--to",
    "targets",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="File to write; its ending says the format.",
)
@click.option("--tokens", help="Draw several on one map: positions, runs, replica:position, such as 0,5,3:0.")
@click.option("--hop", type=int, help="Draw, play or open at this hop (0 is landing).")
@json_option("Report what was written as JSON.")
def export_command(
    scenario: Scenario, targets: tuple[Path, ...], tokens: str | None, hop: int | None, as_json: bool
) -> None:
    """Write the trip as a picture or a table; the file's ending says which.

    Pictures: .svg, .anim.svg (plays, also as an image), .html (the player in one file), .png, .gif.
    Text: .json, .csv, .mmd and .seq.mmd (Mermaid), .dot, .graphml, .perfetto.json (times at link rate).
    Several tokens (--tokens) go into the pictures and .json.

    All but .json, .csv and .perfetto.json carry their scenario. With --check, files are compared with what
    the engine says now: exit code 1 when one is out of date. With --fill, the blocks of Markdown files are
    written anew.

    \b
    Example:
      tokentrip export six-cuts --to trip.svg --hop 4
      tokentrip export six-cuts --to trip.anim.svg --to trip.html
      tokentrip export six-cuts --tokens 0,40,3:40 --to together.svg
      tokentrip export --check trip.svg README.md
      tokentrip export --fill README.md
    """
    from app.exports.files import write_whole
    from app.exports.formats import format_of
    from app.exports.stamp import stamped
    from app.query.trips import follow

    formats = [format_of(target) for target in targets]
    trips = follow(scenario, tokens)
    last = len(trips.steps) - 1
    if hop is not None and not 0 <= hop <= last:
        raise ConfigError("--hop", hop, f"must be a hop from 0 to {last}", "try 0, the landing")
    source = click.get_current_context().meta[UNCHANGED_SOURCE] if trips.scenario == scenario else None
    written = []
    for target, write in zip(targets, formats, strict=True):
        path = beside(source, target)
        content = stamped(write(trips, hop), target.suffix.lower(), trips, source=path, hop=hop)
        data = content.encode() if isinstance(content, str) else content
        write_whole(target, data)
        written.append({"file": str(target), "bytes": len(data)})
    if as_json:
        print_json({"schema": 1, "written": written})
    else:
        for row in written:
            click.echo(f"wrote {row['file']} ({row['bytes']:,} bytes)")


def beside(source: str | None, target: Path) -> str | None:
    """A scenario file as seen from the folder of the picture; a preset's name as it is."""
    from tracer.scenario.files import SUFFIXES

    if source is None or Path(source).suffix.lower() not in SUFFIXES:
        return source
    return os.path.relpath(source, target.parent)

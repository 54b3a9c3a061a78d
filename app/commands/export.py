"""``tokentrip export``: the trip as a picture, or for another tool."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.commands.check import check_command, fill_command
from app.commands.scenario_source import UNCHANGED_SOURCE, scenario_argument
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.scenario import Scenario


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
@click.option("--hop", type=int, help="Draw, play or open at this hop (0 is landing).")
@click.option("--json", "as_json", is_flag=True, help="Report what was written as JSON.")
def export_command(scenario: Scenario, targets: tuple[Path, ...], hop: int | None, as_json: bool) -> None:
    """Write the trip as a picture or a table; the file's ending says which.

    Pictures: .svg, .anim.svg (plays, also as an image), .html (the player in one file), .png, .gif.
    Text: .json, .csv, .mmd and .seq.mmd (Mermaid), .dot, .graphml, .perfetto.json (times at link rate).

    SVG, HTML, Mermaid and DOT files carry their scenario. With --check, files are compared with what the
    engine says now: exit code 1 when one is out of date. With --fill, the blocks of Markdown files are
    written anew.

    \b
    Example:
      tokentrip export six-cuts --to trip.svg --hop 4
      tokentrip export six-cuts --to trip.anim.svg --to trip.html
      tokentrip export --check trip.svg README.md
      tokentrip export --fill README.md
    """
    from app.export_formats import format_of
    from app.files import write_whole
    from app.stamp import stamped
    from tracer.trip import take_trip

    formats = [format_of(target) for target in targets]
    trip = take_trip(scenario)
    if hop is not None and not 0 <= hop < len(trip.hops):
        raise ConfigError("--hop", hop, f"must be a hop from 0 to {len(trip.hops) - 1}", "try 0, the landing")
    written = []
    for target, write in zip(targets, formats, strict=True):
        content = write(trip, hop)
        if isinstance(content, str):
            source = click.get_current_context().meta[UNCHANGED_SOURCE]
            content = stamped(content, target.suffix.lower(), trip, source=beside(source, target), hop=hop)
        write_whole(target, content)
        written.append(
            {"file": str(target), "bytes": len(content if isinstance(content, bytes) else content.encode())}
        )
    if as_json:
        import json

        click.echo(json.dumps({"schema": 1, "written": written}))
    else:
        for row in written:
            click.echo(f"wrote {row['file']} ({row['bytes']:,} bytes)")


def beside(source: str | None, target: Path) -> str | None:
    """A scenario file as seen from the folder of the picture; a preset's name as it is."""
    from tracer.presets import SUFFIXES

    if source is None or Path(source).suffix.lower() not in SUFFIXES:
        return source
    return os.path.relpath(source, target.parent)

"""``tokentrip export``: the trip as a picture, or for another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.scenario_source import scenario_argument
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.scenario import Scenario


@click.command("export")
@scenario_argument
@click.option(
    "--to",
    "targets",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="File to write; its ending says the format.",
)
@click.option("--hop", type=int, help="Draw this hop (0 is landing), not the whole map.")
@click.option("--json", "as_json", is_flag=True, help="Report what was written as JSON.")
def export_command(scenario: Scenario, targets: tuple[Path, ...], hop: int | None, as_json: bool) -> None:
    """Write the trip as a picture or a table; the file's ending says which.

    Pictures: .svg. Text: .json, .csv, .mmd and .seq.mmd (Mermaid), .dot, .graphml.

    \b
    Example:
      tokentrip export six-cuts --to trip.svg --hop 4
    """
    from app.export_formats import format_of
    from app.files import write_whole
    from tracer.trip import take_trip

    formats = [format_of(target) for target in targets]
    trip = take_trip(scenario)
    if hop is not None and not 0 <= hop < len(trip.hops):
        raise ConfigError("--hop", hop, f"must be a hop from 0 to {len(trip.hops) - 1}", "try 0, the landing")
    written = []
    for target, write in zip(targets, formats, strict=True):
        content = write(trip, hop)
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

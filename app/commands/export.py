"""``tokentrip export``: the trip as a picture, or for another tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.scenario_source import scenario_argument
from tracer.errors import ConfigError, nearest

if TYPE_CHECKING:
    from tracer.scenario import Scenario
    from tracer.trip import Trip


def _svg(trip: Trip, hop: int | None) -> str:
    from layouts import build_scene, render_svg

    return render_svg(build_scene(trip), hop=hop)


def _json(trip: Trip, hop: int | None) -> str:
    from tracer.exporters.json_trip import to_json

    return to_json(trip)


def _mermaid(trip: Trip, hop: int | None) -> str:
    from tracer.exporters.mermaid import to_mermaid

    return to_mermaid(trip)


WRITERS: dict[str, Callable[[Trip, int | None], str]] = {".svg": _svg, ".json": _json, ".mmd": _mermaid}


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
    """Write the trip as .svg, .json or .mmd (Mermaid).

    \b
    Example:
      tokentrip export six-cuts --to trip.svg --hop 4
    """
    from app.files import write_whole
    from tracer.trip import take_trip

    writers = [_writer(target) for target in targets]
    trip = take_trip(scenario)
    if hop is not None and not 0 <= hop < len(trip.hops):
        raise ConfigError("--hop", hop, f"must be a hop from 0 to {len(trip.hops) - 1}", "try 0, the landing")
    written = []
    for target, writer in zip(targets, writers, strict=True):
        content = writer(trip, hop)
        write_whole(target, content)
        written.append({"file": str(target), "bytes": len(content.encode())})
    if as_json:
        import json

        click.echo(json.dumps({"schema": 1, "written": written}))
    else:
        for row in written:
            click.echo(f"wrote {row['file']} ({row['bytes']:,} bytes)")


def _writer(target: Path) -> Callable[[Trip, int | None], str]:
    suffix = target.suffix.lower()
    if suffix not in WRITERS:
        raise ConfigError("--to", str(target), "has no format that ends so", nearest(suffix, list(WRITERS)))
    return WRITERS[suffix]

"""``tokentrip run``: recordings of a real run, laid over what should have happened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracer.runs.report import RunReport

FOUND = 1


@click.command("run")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "--against",
    metavar="SCENARIO|LAUNCH",
    help="Hold the run to a preset, a scenario file, or a line such as 'megatron --tensor-...'.",
)
@click.option("--save", type=click.Path(path_type=Path), help="Write the recovered scenario here (.toml).")
@click.option(
    "--to", "to", type=click.Path(path_type=Path), help="Write the differences here (.md or .json)."
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def run_command(
    files: tuple[str, ...], against: str | None, save: Path | None, to: Path | None, as_json: bool
) -> None:
    """Read what a run recorded: its layout, who is late, and where it differs from the trip.

    FILES are Flight Recorder dumps, profiler traces (.json, .json.gz) and NCCL_DEBUG=INFO logs: files,
    folders or patterns. Exit code 0 where nothing differs and nobody is late, 1 where something is found.

    \b
    Example:
      tokentrip run dumps/
      tokentrip run 'nccl_trace_rank_*' --against six-cuts
    """
    from tracer.runs.against import against as reference
    from tracer.runs.reading.files import read_run
    from tracer.runs.report import examine

    recording = read_run(files)
    report = examine(recording, None if against is None else reference(against, recording.world_size))
    if save is not None:
        _save(report, save)
    if to is not None:
        _export(report, to)
    if as_json:
        from app.commands.common.tables import print_json

        print_json(report.to_dict())
    else:
        click.echo(str(report))
    if report.found:
        sys.exit(FOUND)


def _save(report: RunReport, path: Path) -> None:
    """The recovered scenario as TOML, whatever the run is held against."""
    from app.exports.files import write_whole
    from tracer.runs.scenario import to_scenario

    write_whole(path, to_scenario(report.layout)[0].to_toml())


def _export(report: RunReport, path: Path) -> None:
    """The differences as Markdown or JSON, by the path's ending."""
    import json

    from app.exports.files import write_whole
    from tracer.errors import ConfigError

    ending = path.suffix.lower()
    if ending not in (".md", ".json"):
        raise ConfigError("--to", str(path), "must end in .md or .json", "name it differences.md")
    text = (
        report.to_markdown()
        if ending == ".md"
        else json.dumps(report.to_dict(), indent=1, ensure_ascii=False)
    )
    write_whole(path, text)

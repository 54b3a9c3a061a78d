"""``tokentrip export --check`` and ``--fill``: pictures and documents that stay true."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from app.commands.common.tables import json_option, print_json
from tracer.errors import ConfigError

OUT_OF_DATE = 1
DOCUMENTS = (".md", ".markdown")


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option()
def check_command(files: tuple[Path, ...], as_json: bool) -> None:
    """Compare pictures and Markdown blocks with what the engine says now.

    Exit code 1 when a file is out of date; what changed is named.

    \b
    Example:
      tokentrip export --check trip.svg README.md
    """
    results = [(file, _differences(file)) for file in files]
    if as_json:
        rows = [{"file": str(file), "up_to_date": not found, "changes": found} for file, found in results]
        print_json({"schema": 1, "files": rows})
    else:
        for file, found in results:
            click.echo(f"{file}: {'out of date' if found else 'up to date'}")
            for line in found:
                click.echo(f"  {line}")
    if any(found for _, found in results):
        sys.exit(OUT_OF_DATE)


def _differences(file: Path) -> list[str]:
    from app.exports.documents import fill_document
    from app.exports.freshness import picture_differences
    from tracer.scenario.files import read_text

    if file.suffix.lower() not in DOCUMENTS:
        return picture_differences(file)
    filled = fill_document(read_text(file, "--check"), str(file), file.parent)
    stale = [
        f"{path.name} is missing or out of date"
        for path, content in filled.pictures
        if not _holds(path, content)
    ]
    return [*filled.changed, *stale]


def _holds(path: Path, content: str) -> bool:
    """Whether a file is there with this text; a name that the system refuses is not there."""
    try:
        return path.read_bytes() == content.encode()
    except (OSError, ValueError):
        return False


@click.command("fill")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def fill_command(files: tuple[Path, ...]) -> None:
    """Write the blocks of Markdown files anew, and the pictures they show.

    \b
    Example:
      tokentrip export --fill README.md
    """
    from app.exports.documents import fill_document
    from app.exports.files import write_whole
    from tracer.scenario.files import read_text

    for file in files:
        if file.suffix.lower() not in DOCUMENTS:
            raise ConfigError("--fill", str(file), "is not a Markdown document", "give .md files")
        filled = fill_document(read_text(file, "--fill"), str(file), file.parent)
        for path, content in filled.pictures:
            write_whole(path, content)
        write_whole(file, filled.text)
        click.echo(f"{file}: {len(filled.changed)} blocks changed, {len(filled.pictures)} pictures written")

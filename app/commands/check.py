"""``tokentrip export --check`` and ``--fill``: pictures and documents that stay true."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from app.commands.common.tables import json_option, print_json
from tracer.errors import ConfigError

OUT_OF_DATE, NOT_CHECKED = 1, 2
DOCUMENTS = (".md", ".markdown")


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--skip-others", is_flag=True, help="Pass over files that carry no scenario, as a hook must.")
@json_option()
def check_command(files: tuple[Path, ...], skip_others: bool, as_json: bool) -> None:
    """Compare pictures and Markdown blocks with what the engine says now.

    Every file is looked at. Exit code 1 when one is out of date, and what changed is named; else 2 when one
    could not be checked.

    \b
    Example:
      tokentrip export --check trip.svg README.md
      tokentrip export --check --skip-others docs/images/*.svg
    """
    if len(files) == 1 and not skip_others:
        results = [CheckedFile(files[0], _differences(files[0]))]  # alone, it is refused in full
    else:
        results = [_checked(file) for file in files]
    if skip_others:
        results = [each for each in results if not each.foreign]
    if as_json:
        print_json({"schema": 1, "files": [each.to_dict() for each in results]})
    else:
        for each in results:
            click.echo(f"{each.file}: {each.verdict}")
            for line in each.changes:
                click.echo(f"  {line}")
        if len(results) > 1:
            click.echo(_summary(results))
    if any(each.changes for each in results):
        sys.exit(OUT_OF_DATE)
    if any(each.problem for each in results):
        sys.exit(NOT_CHECKED)


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """What was found of a file: what changed in it, or why it could not be checked."""

    file: Path
    changes: list[str]
    problem: str = ""

    @property
    def foreign(self) -> bool:
        """Whether the file is there and was not exported by tokentrip."""
        return bool(self.problem) and self.file.is_file()

    @property
    def verdict(self) -> str:
        """The verdict in a few words."""
        if self.problem:
            return f"not checked: {self.problem}"
        return "out of date" if self.changes else "up to date"

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``up_to_date`` is null where it was not checked."""
        current = None if self.problem else not self.changes
        return {
            "file": str(self.file),
            "up_to_date": current,
            "changes": self.changes,
            "problem": self.problem or None,
        }


def _checked(file: Path) -> CheckedFile:
    try:
        return CheckedFile(file, _differences(file))
    except ConfigError as error:
        return CheckedFile(file, [], f"{error.rule}; {error.fix}")


def _summary(results: list[CheckedFile]) -> str:
    old, unread = sum(bool(each.changes) for each in results), sum(bool(each.problem) for each in results)
    parts = [f"{len(results) - old - unread} up to date", f"{old} out of date", f"{unread} not checked"]
    return f"{len(results)} files: {', '.join(part for part in parts if not part.startswith('0 '))}"


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

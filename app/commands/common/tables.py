"""Tables and JSON on standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from tracer.display import left, text_table

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(what: str = "The same as JSON.") -> Callable[[Command], Command]:
    """The ``--json`` flag of a command, which it gets as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help=what)


def print_json(value: Any, indent: int | None = None) -> None:
    """JSON, by default on one line; floats as Python writes them."""
    import json

    click.echo(json.dumps(value, indent=indent, ensure_ascii=False))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """A table without borders; the last column wraps on a terminal, and nothing is cut in a pipe."""
    columns = [left(heading, gap=2 * bool(place)) for place, heading in enumerate(headings)]
    head, *lines = text_table(columns, rows, line_width=_terminal_width())
    if title is not None:
        click.secho(title, italic=True)
    click.secho(head, bold=True)
    for line in lines:
        click.echo(line)


def _terminal_width() -> int | None:
    """Letters of a line of the terminal; None where standard output is none."""
    import shutil
    import sys

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

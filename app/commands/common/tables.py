"""Tables and JSON on standard output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

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
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(heading, no_wrap=place < len(headings) - 1)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=400)
    console.print(table)

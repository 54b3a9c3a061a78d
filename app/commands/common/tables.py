"""Tables and JSON on standard output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click


def print_json(value: Any) -> None:
    """JSON on one line, floats as Python writes them."""
    import json

    click.echo(json.dumps(value, ensure_ascii=False))


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

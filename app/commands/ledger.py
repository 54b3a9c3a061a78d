"""``tokentrip ledger``: the sources' figures, checked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from app.commands.common.tables import json_option, print_json, print_table

if TYPE_CHECKING:
    from tracer.proof.ledger.line import LedgerLine

CHECK_FAILED = 1


@click.command("ledger")
@click.option("--source", help="Only sources whose name has this text.")
@click.option("--markdown", is_flag=True, help="Markdown tables, one a source.")
@json_option()
def ledger_command(source: str | None, markdown: bool, as_json: bool) -> None:
    """Compute every figure the source articles state, and say which hold.

    Exit code 1 when a verdict is not borne out by what is computed.

    \b
    Example:
      tokentrip ledger
      tokentrip ledger --source simulation --json
    """
    from tracer.errors import ConfigError
    from tracer.proof.ledger.report import ledger, ledger_markdown, ledger_report

    lines = [line for line in ledger() if source is None or source.lower() in line.source.lower()]
    if not lines:
        raise ConfigError("--source", source, "is in no source's name", "leave it out to see all")
    if as_json:
        print_json(ledger_report(lines))
    elif markdown:
        click.echo(ledger_markdown(lines), nl=False)
    else:
        _print(lines)
    if not all(line.holds for line in lines):
        sys.exit(CHECK_FAILED)


def _print(lines: list[LedgerLine]) -> None:
    for name in dict.fromkeys(line.source for line in lines):
        rows = [
            (
                ("" if line.holds else "DOES NOT HOLD: ") + str(line.verdict),
                line.stated,
                line.computed + (f" ({line.note})" if line.note else ""),
            )
            for line in lines
            if line.source == name
        ]
        print_table(("verdict", "stated", "computed"), rows, title=name)
        click.echo()

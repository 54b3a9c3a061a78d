"""All checked figures, as JSON values, text, and a table for the documentation."""

from __future__ import annotations

from typing import Any

from tracer.proof.ledger import moe_deployment, moe_inference, simulation, six_cuts, times, weights_move
from tracer.proof.ledger.line import LedgerLine

SCHEMA = 1
MODULES = (six_cuts, moe_inference, moe_deployment, simulation, weights_move, times)


def ledger() -> list[LedgerLine]:
    """Every line, computed now."""
    return [check() for module in MODULES for check in module.CHECKS]


def ledger_report(lines: list[LedgerLine]) -> dict[str, Any]:
    """JSON values."""
    return {
        "schema": SCHEMA,
        "holds": all(line.holds for line in lines),
        "lines": [line.to_dict() for line in lines],
    }


def ledger_markdown(lines: list[LedgerLine]) -> str:
    """One Markdown table a source."""
    parts = []
    for source in dict.fromkeys(line.source for line in lines):
        rows = [
            f"| {_cell(line.stated)} | {line.verdict} | {_cell(line.computed)} | {_cell(line.note)} |"
            for line in lines
            if line.source == source
        ]
        head = "| stated | verdict | computed | note |\n| --- | --- | --- | --- |"
        parts.append("\n".join([f"### {source}", "", head, *rows]))
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

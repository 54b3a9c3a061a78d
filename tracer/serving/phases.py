"""Prefill against decode, axis by axis: what each cut becomes, computed or stated with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracer.scenario.token import Phase
from tracer.serving import phase_cells as cells

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.serving.phase_cells import Cell

ROWS: dict[str, Callable[[Scenario], Cell]] = {
    "dp": cells.dp_cell,
    "cp": cells.cp_cell,
    "sp": cells.sp_cell,
    "tp": cells.tp_cell,
    "ep": cells.ep_cell,
    "pp": cells.pp_cell,
}


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One axis in both phases."""

    axis: str
    prefill: Cell
    decode: Cell


@dataclass(frozen=True, slots=True)
class PhaseTable:
    """The table of a deployment; ``print`` shows it."""

    prefill: Scenario
    decode: Scenario
    rows: tuple[PhaseRow, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """JSON values; ``tracer/data/schemas/phases.schema.json`` describes them."""
        return {
            "schema": 1,
            "rows": [
                {"axis": row.axis, "prefill": row.prefill.to_dict(), "decode": row.decode.to_dict()}
                for row in self.rows
            ],
        }

    def __str__(self) -> str:
        lines = []
        for row in self.rows:
            lines += [row.axis.upper(), f"  prefill  {row.prefill}", f"  decode   {row.decode}"]
        return "\n".join(lines)


def phase_table(prefill: Scenario, decode: Scenario | None = None) -> PhaseTable:
    """Both phases of one deployment, or of a prefill and a decode scenario with meshes of their own.

    Raises:
        ConfigError: when the model does not state a size that a cell needs.
    """
    first = prefill.with_phase(Phase.PREFILL)
    second = (decode or prefill).with_phase(Phase.DECODE)
    rows = tuple(PhaseRow(axis, cell(first), cell(second)) for axis, cell in ROWS.items())
    return PhaseTable(first, second, rows)

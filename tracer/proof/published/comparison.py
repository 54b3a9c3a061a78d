"""Predicted beside published: a table with the error of each row."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from tracer.display import left, right, text_table


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity: what was published, what is predicted, both in ``unit``."""

    name: str
    published: float
    predicted: float
    unit: str
    note: str = ""

    @property
    def error(self) -> float:
        """Predicted over published, less 1."""
        return self.predicted / self.published - 1


@dataclass(frozen=True, slots=True)
class PublishedComparison:
    """A published set and our figures for it; ``print`` shows the table with median and worst error.

    ``assumptions`` say whose rates were used and whether these very rows were fitted.
    """

    title: str
    source: str
    setting: str
    assumptions: str
    rows: tuple[Row, ...]

    @property
    def median_error(self) -> float:
        """Median of the absolute errors."""
        return median(abs(row.error) for row in self.rows)

    @property
    def worst_error(self) -> float:
        """Largest absolute error."""
        return max(abs(row.error) for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "title": self.title,
            "source": self.source,
            "setting": self.setting,
            "assumptions": self.assumptions,
            "median_error": self.median_error,
            "worst_error": self.worst_error,
            "rows": [{name: getattr(row, name) for name in (*Row.__slots__, "error")} for row in self.rows],
        }

    def __str__(self) -> str:
        columns = (
            left(),
            right("published", 11, gap=1),
            right("predicted", 11, gap=1),
            right("error", 8, gap=1),
            left(width=0),
            left(),
        )
        rows = [
            (
                row.name,
                f"{row.published:.4g}",
                f"{row.predicted:.4g}",
                f"{row.error:+.1%}",
                row.unit,
                row.note,
            )
            for row in self.rows
        ]
        lines = [
            self.title,
            f"  published: {self.setting} ({self.source})",
            f"  predicted: {self.assumptions}",
            *text_table(columns, rows),
        ]
        return "\n".join([*lines, f"  error: median {self.median_error:.1%}, worst {self.worst_error:.1%}"])

"""One checked figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What became of a figure.

    ``reproduces``: the engine computes it. ``loose``: right under a reading the source leaves unsaid.
    ``wrong``: another value is right. ``published``: a measurement of others, shown and not derived.
    """

    REPRODUCES = "reproduces"
    LOOSE = "loose"
    WRONG = "wrong"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """A figure as stated, the verdict, and what the engine computed.

    ``holds`` says whether the computed values bear the verdict out: a line that does not hold is a bug here.
    """

    source: str
    stated: str
    verdict: Verdict
    computed: str
    holds: bool
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "source": self.source,
            "stated": self.stated,
            "verdict": str(self.verdict),
            "computed": self.computed,
            "note": self.note,
            "holds": self.holds,
        }


Check = Callable[[], LedgerLine]


def near(value: float, stated: float, digits: int) -> bool:
    """Whether ``value``, rounded to ``digits`` significant digits, is the figure stated.

    >>> near(0.7581, 0.76, 2), near(4.0966e14, 4.3e14, 2)
    (True, False)
    """
    return float(f"{value:.{digits}g}") == float(f"{stated:.{digits}g}")

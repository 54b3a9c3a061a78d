"""Ratios of two ways to do one thing, taken in one run: the two take turns, and the best of each counts."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """``ours`` over ``baseline``, best seconds of each, and the bound that the ratio must keep."""

    name: str
    ours_s: float
    baseline_s: float
    bound: float
    at_most: bool
    unit: str = "ms"
    scale: float = 1e3

    @property
    def value(self) -> float:
        """How many times the baseline's time ours takes (at most), or ours saves (at least)."""
        return self.ours_s / self.baseline_s if self.at_most else self.baseline_s / self.ours_s

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def __str__(self) -> str:
        sign = "≤" if self.at_most else "≥"
        verdict = "ok" if self.holds else "MISSED"
        return (
            f"{self.name:<58} {self.value:>9.2f}x  ({sign} {self.bound:g}x {verdict})   "
            f"ours {self.scale * self.ours_s:.3f} {self.unit}, "
            f"baseline {self.scale * self.baseline_s:.3f} {self.unit}"
        )


def interleave(
    name: str,
    ours: Callable[[], object],
    baseline: Callable[[], object],
    *,
    rounds: int,
    baseline_rounds: int | None = None,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Ratio:
    """Run the two in turns and keep the best time of each; a slow baseline may run fewer rounds."""
    best = [float("inf"), float("inf")]
    limits = (rounds, baseline_rounds or rounds)
    for turn in range(max(limits)):
        for place, task in enumerate((ours, baseline)):
            if turn < limits[place]:
                start = time.perf_counter()
                task()
                best[place] = min(best[place], time.perf_counter() - start)
    bound = at_most if at_most is not None else at_least
    return Ratio(name, best[0], best[1], bound or 0.0, at_most is not None)


def machine() -> str:
    """The machine in one line, for beside the figures."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(
                (line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model
            )
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"

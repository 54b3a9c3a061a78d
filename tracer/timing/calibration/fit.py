"""From the physics of one call and a few fitted numbers to seconds.

A call is described by :class:`OpWork`: seconds that each limit alone would take at the data sheet's peak
(launch, arithmetic, memory, links), and coordinates that say where in the measured range it lies. A
:class:`Fit` scales the limits, joins them with a smooth maximum, and multiplies a correction that is
read by linear interpolation from small tables over the coordinates.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import exp, fsum, log
from typing import TYPE_CHECKING, Any

from tracer.data import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MICROSECOND, NANOSECOND = 1e-6, 1e-9
UNIT = 0.01
"""What one step of a stored correction means, in natural logarithms: about 1 %."""


@dataclass(frozen=True, slots=True)
class OpWork:
    """One call: ``limits`` in seconds at peak rates, its place among the measured, and its physical floor.

    ``variant`` names the set of fitted numbers (a format, a kernel). ``coordinates`` are logarithms to
    base 2 of sizes, or numbers of a category. ``floor_seconds`` is what no kernel can beat: the larger of
    arithmetic at peak and of the bytes that must move at peak.
    """

    variant: str
    limits: tuple[float, ...]
    coordinates: Mapping[str, float]
    floor_seconds: float


@dataclass(frozen=True, slots=True)
class Correction:
    """A table over named axes: ``steps`` of ``UNIT`` at every point of the grid, last axis fastest."""

    axes: tuple[tuple[str, tuple[float, ...]], ...]
    steps: tuple[float, ...]

    def at(self, coordinates: Mapping[str, float]) -> float:
        """Logarithm of the factor, linear between grid points and level beyond the last."""
        corners: list[tuple[int, float]] = [(0, 1.0)]
        for name, knots in self.axes:
            low, share = _between(knots, coordinates[name])
            size = len(knots)
            corners = [
                (place * size + low + step, weight * part)
                for place, weight in corners
                for step, part in ((0, 1.0 - share), (1, share))
                if part
            ]
        return UNIT * fsum(weight * self.steps[place] for place, weight in corners)


def _between(knots: Sequence[float], value: float) -> tuple[int, float]:
    """Index of the knot below ``value`` and the share of the way to the next."""
    if value <= knots[0]:
        return 0, 0.0
    if value >= knots[-1]:
        return len(knots) - 1, 0.0
    low = bisect_right(knots, value) - 1
    return low, (value - knots[low]) / (knots[low + 1] - knots[low])


@dataclass(frozen=True, slots=True)
class Fit:
    """Scales of the limits, how sharply the largest wins, and the corrections of one variant.

    ``error`` and ``error_p90`` are relative errors on rows left out of the fit (median, ninetieth
    percentile); ``fixed`` are coordinates that the fit itself sets (which of two pooled systems it is);
    ``measured`` are the lowest and highest coordinates of the rows behind it.
    """

    scales: tuple[float, ...]
    power: float
    corrections: tuple[Correction, ...] = ()
    error: float | None = None
    error_p90: float | None = None
    fixed: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def seconds(self, work: OpWork) -> float:
        """(Σ (scale · limit)^power)^(1/power) times the correction, and never below the floor."""
        joined = self._joined(work.limits)
        if self.corrections:
            place = {**work.coordinates, **self.fixed}
            joined *= exp(fsum(table.at(place) for table in self.corrections))
        return max(joined, work.floor_seconds)

    def outside(self, work: OpWork) -> bool:
        """Whether a coordinate lies outside what was measured."""
        return any(
            not low - 1e-2 <= work.coordinates[name] <= high + 1e-2
            for name, (low, high) in self.measured.items()
        )

    def _joined(self, limits: tuple[float, ...]) -> float:
        parts = [scale * limit for scale, limit in zip(self.scales, limits, strict=True) if scale * limit > 0]
        largest = max(parts)
        total = fsum((part / largest) ** self.power for part in parts)
        return float(largest * exp(log(total) / self.power))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a kind: ``work(*sizes)`` is its physics; sizes grow along ``grids`` of measured points.

    Kernels are chosen by size, so that a measured time may fall where a size grows. A larger call is never
    stated as faster than a smaller one: the time is the largest over the call itself and the smaller calls
    on the grids. Between grid points a correction is a power of the size and the limits bend upwards, so
    that these hold the maximum.
    """

    kind: str
    work: Callable[..., OpWork]
    sizes: tuple[float, ...]
    grids: tuple[tuple[float, ...], ...]

    def seconds(self, fit: Fit) -> float:
        """The time by a fit, growing with every size."""
        candidates = [
            [*(point for point in grid if point < size), size]
            for size, grid in zip(self.sizes, self.grids, strict=True)
        ]
        return max(fit.seconds(self.work(*each)) for each in product(*candidates))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything fitted for one kind of call: fits by (system, variant) and what they come from.

    ``transfers`` are the median and ninetieth percentile of relative errors when a measured system was
    answered by the others, by how far apart their data sheets are; ``follows`` is the power by which times
    then follow the data sheet's rates.
    """

    kind: str
    fits: Mapping[tuple[str, str], Fit]
    versions: Mapping[str, str]
    transfers: Mapping[str, tuple[float, float]]
    follows: float = 1.0


@cache
def calibration(kind: str) -> Calibration:
    """The calibration that ships for a kind of call."""
    text = (FOLDER / "calibrations" / f"{kind}.json").read_text(encoding="utf-8")
    return read_calibration(json.loads(text))


def read_calibration(stored: Mapping[str, Any]) -> Calibration:
    """A calibration from its file; tables that fits share are stored once."""
    tables = {name: tuple(_correction(each) for each in group) for name, group in stored["tables"].items()}
    fits = {
        (entry["system"], entry["variant"]): Fit(
            tuple(entry["scales"]),
            entry["power"],
            tables.get(entry.get("table"), ()),
            entry.get("error"),
            entry.get("error_p90"),
            entry.get("fixed", {}),
            {name: (low, high) for name, (low, high) in entry.get("measured", {}).items()},
        )
        for entry in stored["fits"]
    }
    transfers = {reach: (each["error"], each["error_p90"]) for reach, each in stored["transfer"].items()}
    return Calibration(stored["kind"], fits, stored["versions"], transfers, stored.get("follows", 1.0))


def _correction(stored: Mapping[str, Any]) -> Correction:
    axes = tuple((name, tuple(float(knot) for knot in knots)) for name, knots in stored["axes"])
    return Correction(axes, tuple(float(step) for step in stored["steps"]))

"""Fits on a set of rows as a calibration file, and its errors on rows and systems left out."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.calibrations.least_squares import Floats, basis, fit_corrections, fit_limits, joined
from benchmarks.calibrations.rows import SYSTEMS, Row
from benchmarks.calibrations.specs import FAMILIES, PLACES, Axis, Spec
from tracer.timing.calibration.fit import UNIT, Calibration, OpWork, read_calibration
from tracer.timing.calibration.systems import between, known_hardware

FOLDS = 5
FOLLOWS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
MOST_PER_PAIR, LEAST_MOVE = 300, 0.05
MOST_PER_FOLD = 400
"""Predictions look at every smaller call as well, which takes milliseconds each."""
IMPOSSIBLE = 0.97
"""A row below this share of the physical floor is dropped: no kernel is faster than the data sheet."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rows with their physics, ready to fit."""

    rows: Sequence[Row]
    works: Sequence[OpWork]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Prepared:
        """Rows that physics allows."""
        kept = [(row, row.work) for row in rows]
        kept = [(row, work) for row, work in kept if row.seconds >= IMPOSSIBLE * work.floor_seconds]
        return cls([row for row, _ in kept], [work for _, work in kept])

    def part(self, chosen: Sequence[int]) -> Prepared:
        """Some of the rows."""
        return Prepared([self.rows[at] for at in chosen], [self.works[at] for at in chosen])


def _group(spec: Spec, system: str, variant: str) -> str:
    if variant in spec.pools:
        return f"{FAMILIES[system]}/{spec.pools[variant][0]}"
    shared = {"variant": variant, "first": variant.split("/")[0], "all": "all"}[spec.shared]
    return f"{FAMILIES[system]}/{shared}"


def fixed_of(spec: Spec, system: str, variant: str) -> dict[str, float]:
    """Coordinates that a fit sets itself."""
    kind = {"kind": float(spec.kinds.index(variant))} if spec.kinds else {}
    pool = {"v": spec.pools.get(variant, ("", 0.0))[1]} if spec.pools else {}
    return {"sys": PLACES[system], **kind, **pool}


def fit_kind(kind: str, spec: Spec, data: Prepared) -> dict[str, Any]:
    """The calibration file of a kind, without its errors."""
    places: dict[tuple[str, str], list[int]] = {}
    for at, (row, work) in enumerate(zip(data.rows, data.works, strict=True)):
        places.setdefault((row.system, work.variant), []).append(at)
    seconds = np.array([row.seconds for row in data.rows])
    residual = np.zeros(len(seconds))
    fits: list[dict[str, Any]] = []
    for (system, variant), chosen in sorted(places.items()):
        limits = np.array([data.works[at].limits for at in chosen])
        if len(chosen) < limits.shape[1]:
            continue
        scales, power = fit_limits(limits, seconds[chosen], spec.at_least_peak)
        scales = np.array([_short(value) if value > 1e-6 else 0.0 for value in scales])
        scales[limits.max(axis=0) == 0] = 0.0
        power = _short(power)
        residual[chosen] = np.log(seconds[chosen] / joined(scales, power, limits))
        fits.append(
            {"system": system, "variant": variant, "scales": scales.tolist(), "power": power}
            | {"rows": len(chosen), "fixed": fixed_of(spec, system, variant)}
            | {"measured": _measured([data.works[at] for at in chosen])}
        )
    tables = _tables(spec, data, places, fits, residual)
    _borrow_rails(kind, fits)
    return {"kind": kind, "fits": fits, "tables": tables}


def _measured(works: Sequence[OpWork]) -> dict[str, list[float]]:
    """Lowest and highest of every coordinate."""
    values = {name: [work.coordinates[name] for work in works] for name in works[0].coordinates}
    return {name: [round(min(each), 3), round(max(each), 3)] for name, each in values.items()}


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _borrow_rails(kind: str, fits: list[dict[str, Any]]) -> None:
    """Scales of nodes and rails, where a system was measured on one node, from the one measured on more."""
    if kind != "deepep":
        return
    best = {fit["variant"]: fit for fit in fits if fit["scales"][3]}
    for fit in fits:
        if not fit["scales"][3] and fit["variant"] in best:
            fit["scales"][1], fit["scales"][3] = (best[fit["variant"]]["scales"][at] for at in (1, 3))


def _tables(
    spec: Spec,
    data: Prepared,
    places: Mapping[tuple[str, str], list[int]],
    fits: list[dict[str, Any]],
    residual: Floats,
) -> dict[str, list[dict[str, Any]]]:
    """Corrections of every group of fits that share them."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for fit in fits:
        groups.setdefault(_group(spec, fit["system"], fit["variant"]), []).append(fit)
    stored: dict[str, list[dict[str, Any]]] = {}
    for name, members in sorted(groups.items()):
        chosen = [at for fit in members for at in places[fit["system"], fit["variant"]]]
        tables: list[Sequence[Axis]] = [*spec.tables, *(spec.hopper if name.startswith("hopper") else ())]
        if not tables or len(chosen) < spec.least:
            continue
        fixed = {(fit["system"], fit["variant"]): fit["fixed"] for fit in members}
        spots = [
            {**data.works[at].coordinates, **fixed[data.rows[at].system, data.works[at].variant]}
            for at in chosen
        ]
        tables = [_covered(table, spots) for table in tables]
        axes = {axis for table in tables for axis, _, _ in table}
        coordinates = {axis: np.array([spot[axis] for spot in spots]) for axis in axes}
        weights, ties = basis(coordinates, tables)
        values = fit_corrections(weights, ties, residual[chosen], spec.ridge, drops=spec.drops)
        stored[name] = _stored(tables, values)
        for fit in members:
            fit["table"] = name
    return stored


def _covered(table: Sequence[Any], spots: Sequence[Mapping[str, float]]) -> list[Any]:
    """A table without grid points that no row of the group reaches."""
    kept = []
    for name, grid, tie in table:
        values = [spot[name] for spot in spots]
        low, high = min(values), max(values)
        inside = [
            point
            for at, point in enumerate(grid)
            if (at + 1 >= len(grid) or grid[at + 1] > low) and (at == 0 or grid[at - 1] < high)
        ]
        kept.append((name, tuple(inside) if len(inside) > 1 else tuple(grid[:2]), tie))
    return kept


def _stored(tables: Sequence[Sequence[Any]], values: Floats) -> list[dict[str, Any]]:
    found, at = [], 0
    for table in tables:
        size = int(np.prod([len(grid) for _, grid, _ in table]))
        steps = np.rint(values[at : at + size] / UNIT).astype(int).tolist()
        found.append({"axes": [[name, list(grid)] for name, grid, _ in table], "steps": steps})
        at += size
    return found


def as_calibration(stored: Mapping[str, Any]) -> Calibration:
    """The engine's own object, from a file that lacks what only the whole script knows."""
    blank: dict[str, Any] = {"versions": {}, "transfer": {}}
    return read_calibration({**blank, **stored})


def folds(rows: Sequence[Row], by: str) -> list[int]:
    """The fold of each row: ``rows`` apart, or all rows of a ``shape`` together."""
    keys = [repr(row.shape) if by == "shapes" else repr((row.shape, at)) for at, row in enumerate(rows)]
    return [zlib.crc32(key.encode()) % FOLDS for key in keys]


def left_out(
    kind: str, spec: Spec, data: Prepared, by: str, most: int = MOST_PER_FOLD
) -> list[tuple[int, float]]:
    """(row, relative error) of rows, each predicted by a fit that has not seen its fold.

    Every row is left out once; of a fold that is larger, ``most`` evenly spread ones are predicted.
    """
    fold, found = folds(data.rows, by), []
    for each in range(FOLDS):
        train = [at for at, of in enumerate(fold) if of != each]
        fitted = as_calibration(fit_kind(kind, spec, data.part(train)))
        held = [at for at, of in enumerate(fold) if of == each]
        for at in held[:: max(1, len(held) // most)]:
            row, fit = data.rows[at], fitted.fits.get((data.rows[at].system, data.works[at].variant))
            if fit is not None:
                found.append((at, row.call.seconds(fit) / row.seconds - 1))
    return found


def follows_of(fitted: Calibration, data: Prepared) -> float:
    """The power of the data sheet's rates that brings each measured system nearest to the others.

    What counts is the pair of systems with the largest median, over the rows whose time the rates move most:
    launches take what they take, and smaller calls are not looked at here.
    """
    pairs = [
        moved
        for system, source in itertools.permutations(SYSTEMS, 2)
        if (moved := _moved(fitted, data, system, source)) is not None
    ]
    if not pairs:
        return 1.0
    worst = [max(float(np.median(abs(logs[:, at]))) for logs in pairs) for at in range(len(FOLLOWS))]
    return FOLLOWS[int(np.argmin(worst))]


def _moved(fitted: Calibration, data: Prepared, system: str, source: str) -> Floats | None:
    """Logarithms of predicted by measured time, float64[rows, powers]; None where rates are the same."""
    powers = (*FOLLOWS, 0.0)
    known = [between(known_hardware(source), known_hardware(system), power) for power in powers]
    chosen = [at for at, row in enumerate(data.rows) if row.system == system]
    found = []
    for at in chosen[:: max(1, len(chosen) // MOST_PER_PAIR)]:
        row, fit = data.rows[at], fitted.fits.get((source, data.works[at].variant))
        if fit is not None:
            calls = [row.again(hardware) for hardware in known]
            found.append([fit.seconds(call.work(*call.sizes)) / row.seconds for call in calls])
    logs = np.log(np.array(found).reshape(-1, len(powers)))
    moves = abs(logs[:, 0] - logs[:, -1])
    if not len(logs) or moves.max() < LEAST_MOVE:
        return None
    return np.asarray(logs[moves >= moves.max() / 2, :-1])


def transferred(
    fitted: Calibration, data: Prepared, system: str, order: Sequence[str], follows: float
) -> list[tuple[int, float]]:
    """(row, relative error) on a system, predicted from the first of ``order`` that has the variant."""
    found = []
    chosen = [at for at, row in enumerate(data.rows) if row.system == system]
    for at in chosen[:: max(1, len(chosen) // MOST_PER_FOLD)]:
        row, work = data.rows[at], data.works[at]
        source = next((name for name in order if (name, work.variant) in fitted.fits), None)
        if source is not None:
            hardware = between(known_hardware(source), known_hardware(system), follows)
            seconds = row.again(hardware).seconds(fitted.fits[source, work.variant])
            found.append((at, max(seconds, work.floor_seconds) / row.seconds - 1))
    return found


def quantiles(errors: Iterable[float]) -> tuple[float, float]:
    """Median and ninetieth percentile of absolute values."""
    values = np.abs(np.fromiter(errors, float))
    return float(np.median(values)), float(np.quantile(values, 0.9))

"""Fits by iterated least squares of logarithms; rows far from all others lose their weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibrations.specs import Axis

Floats = NDArray[np.float64]
FAR = 0.25
"""A residual (in natural logarithms) at which a row counts half: some runs had a badly tuned kernel."""


SETTLED = 5
"""Rounds of reweighting after which a correction hardly changes."""
PULL = 1e-2
"""How much a scale's distance from 1.5 costs, in rows: it settles limits that few rows tell apart."""


def fit_limits(limits: Floats, seconds: Floats, at_least_peak: Sequence[int] = ()) -> tuple[Floats, float]:
    """Scales (one per limit) and power of the smooth maximum, by Levenberg-Marquardt.

    ``limits`` is float64[rows, limits] in seconds, ``seconds`` float64[rows]. Limits named by
    ``at_least_peak`` get a scale of 1 or more: nothing is faster than the data sheet.
    """
    count = limits.shape[1]
    logs, target = np.log(np.maximum(limits, 1e-300)), np.log(seconds)
    low, high = np.full(count + 1, -20.0), np.full(count + 1, 15.0)
    low[list(at_least_peak)], low[count], high[count] = 0.0, np.log(0.7), np.log(6.0)
    point = np.full(count + 1, np.log(1.5))
    point[0] = np.log(np.quantile(seconds / limits[:, 0], 0.02))
    point = np.clip(point, low, high)
    damping, value, slope = 1e-2, *_smooth_maximum(point, logs)
    start = point.copy()
    cost = _cost(target - value)
    for _ in range(80):
        weight = 1 / (1 + ((target - value) / FAR) ** 2)
        normal = (slope * weight[:, None]).T @ slope
        normal += PULL * np.eye(count + 1)
        gradient = (slope * weight[:, None]).T @ (target - value) - PULL * (point - start)
        for _ in range(8):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-6 * len(target)), gradient)
            trial = np.clip(point + np.clip(step, -1, 1), low, high)
            value_there, slope_there = _smooth_maximum(trial, logs)
            cost_there = _cost(target - value_there) + PULL * float(((trial - start) ** 2).sum())
            if cost_there < cost:
                point, value, slope, cost = trial, value_there, slope_there, cost_there
                damping = max(damping / 5, 1e-7)
                break
            damping *= 4
        else:
            break
    return np.exp(point[:count]), float(np.exp(point[count]))


def _cost(residual: Floats) -> float:
    return float(np.log1p((residual / FAR) ** 2).sum())


def _smooth_maximum(point: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Logarithm of (Σ (scale · limit)^power)^(1/power), and its slope by each parameter."""
    power = np.exp(point[-1])
    raised = power * (point[:-1] + logs)
    top = raised.max(axis=1, keepdims=True)
    parts = np.exp(raised - top)
    total = parts.sum(axis=1)
    value = (top[:, 0] + np.log(total)) / power
    share = parts / total[:, None]
    by_power = -value + (share * (point[:-1] + logs)).sum(axis=1)
    return value, np.column_stack([share, by_power])


def joined(scales: Floats, power: float, limits: Floats) -> Floats:
    """Seconds of the smooth maximum, float64[rows]."""
    with np.errstate(divide="ignore"):
        point = np.append(np.log(scales), np.log(power))
    return np.exp(_smooth_maximum(np.maximum(point, -60.0), np.log(np.maximum(limits, 1e-300)))[0])


def basis(coordinates: Mapping[str, Floats], tables: Sequence[Sequence[Axis]]) -> tuple[Floats, Floats]:
    """Interpolation weights float64[rows, points] of all tables, and what ties neighbouring points."""
    blocks, ties = [], []
    for table in tables:
        block: Floats | None = None
        sizes = []
        for name, grid, _ in table:
            hats = _hats(coordinates[name], np.asarray(grid, float))
            sizes.append(len(grid))
            block = hats if block is None else (block[:, :, None] * hats[:, None, :]).reshape(len(hats), -1)
        assert block is not None
        blocks.append(block)
        ties.append(_ties(sizes, [tie for _, _, tie in table]))
    whole = np.zeros((sum(map(len, ties)),) * 2)
    at = 0
    for tie in ties:
        whole[at : at + len(tie), at : at + len(tie)] = tie
        at += len(tie)
    return np.hstack(blocks), whole


def _hats(values: Floats, grid: Floats) -> Floats:
    values = np.clip(values, grid[0], grid[-1])
    low = np.clip(np.searchsorted(grid, values, side="right") - 1, 0, len(grid) - 2)
    share = (values - grid[low]) / (grid[low + 1] - grid[low])
    hats, rows = np.zeros((len(values), len(grid))), np.arange(len(values))
    hats[rows, low], hats[rows, low + 1] = 1 - share, share
    return hats


def _ties(sizes: Sequence[int], strengths: Sequence[float]) -> Floats:
    """Σ strength · (difference of neighbours)^2 along every axis, and a little of each value itself."""
    count = int(np.prod(sizes))
    places, tie = np.arange(count).reshape(sizes), 0.02 * np.eye(count)
    for axis, strength in enumerate(strengths):
        along = np.moveaxis(places, axis, 0)
        for one, other in zip(along[:-1].ravel(), along[1:].ravel(), strict=True):
            tie[one, one] += strength
            tie[other, other] += strength
            tie[one, other] -= strength
            tie[other, one] -= strength
    return tie


def fit_corrections(
    weights: Floats, ties: Floats, residual: Floats, ridge: float, *, drops: bool = False
) -> Floats:
    """Values at all grid points, float64[points], robust against rows far away.

    ``drops`` leaves rows beyond five times the usual residual out altogether, once the values have settled.
    """
    rows: Floats = np.ones(len(residual))
    values: Floats = np.zeros(weights.shape[1])
    for turn in range(2 * SETTLED + 1 if drops else SETTLED):
        scaled = weights * rows[:, None]
        solved = np.linalg.solve(scaled.T @ weights + ridge * ties, scaled.T @ residual)
        values = np.asarray(solved, dtype=np.float64)
        left = residual - weights @ values
        scale = max(float(np.median(abs(left))) * 1.5, 0.02)
        if turn < SETTLED - 1:
            rows = np.asarray(1 / (1 + (left / (3 * scale)) ** 2), dtype=np.float64)
        else:
            rows = np.clip(1 - (left / (5 * scale)) ** 2, 0.0, None) ** 2
    return values

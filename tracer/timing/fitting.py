"""How rates are fitted to measurements: least squares of relative errors, by hand-checkable means.

Every row weighs the same whatever its size: t = Σ x_j·c_j is solved for c with each row divided by its
measured t. A latency or an inverse rate that comes out negative is set to 0 and the rest solved again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracer.cluster import Link
from tracer.errors import ConfigError
from tracer.timing.checks import check_amount, check_seconds


def relative_fit(columns: Sequence[Sequence[float]], seconds: Sequence[float]) -> tuple[float, ...]:
    """Coefficients c ≥ 0 that bring Σ_j columns[j]·c_j nearest to ``seconds`` in relative error.

    Raises:
        ConfigError: for columns of another length than ``seconds``, or a time that is not above 0.
    """
    times = np.array([check_seconds("fit.seconds", value) for value in seconds])
    table = np.array(columns, dtype=np.float64).T
    if table.shape[:1] != times.shape:
        raise ConfigError("fit.columns", f"{table.shape[0]} rows", f"must be {len(times)} rows", "mend them")
    weighted = table / times[:, None]
    kept = list(range(table.shape[1]))
    while True:
        found = np.linalg.lstsq(weighted[:, kept], np.ones(len(times)), rcond=None)[0]
        if (found >= 0).all() or len(kept) == 1:
            break
        kept.pop(int(found.argmin()))
    result = np.zeros(table.shape[1])
    result[kept] = np.maximum(found, 0)
    return tuple(result.tolist())


def fit_link(payload_bytes: Sequence[float], seconds: Sequence[float]) -> Link:
    """The link whose latency + bytes / bandwidth comes nearest.

    Raises:
        ConfigError: as :func:`relative_fit`, or when time does not grow with the bytes.
    """
    sizes = [check_amount("fit.bytes", value) for value in payload_bytes]
    latency, inverse = relative_fit([[1.0] * len(sizes), sizes], seconds)
    if inverse <= 0:
        raise ConfigError("fit.seconds", "times", "must grow with the bytes", "give more sizes")
    return Link(1 / inverse, latency)


def fit_two_lines(payload_bytes: Sequence[float], seconds: Sequence[float]) -> tuple[Link, Link]:
    """Two links of which the faster counts: a protocol for small messages, and one for large.

    Rows are split at every size in turn and each side fitted; the split whose worst relative error is
    smallest wins. Rows must be in order of size, three at least a side.

    Raises:
        ConfigError: for fewer than six rows.
    """
    if len(payload_bytes) < 6:
        raise ConfigError("fit.bytes", f"{len(payload_bytes)} rows", "must be at least 6", "give more sizes")
    rows = list(zip(payload_bytes, seconds, strict=True))

    def lines(split: int) -> tuple[Link, Link]:
        head, tail = zip(*rows[:split], strict=True), zip(*rows[split:], strict=True)
        return (fit_link(*map(list, head)), fit_link(*map(list, tail)))

    def worst(pair: tuple[Link, Link]) -> float:
        return max(abs(faster(pair, size) / time - 1) for size, time in rows)

    return min((lines(split) for split in range(3, len(rows) - 2)), key=worst)


def faster(lines: Sequence[Link], payload_bytes: float) -> float:
    """Seconds of the fastest of several links."""
    return min(line.latency_s + payload_bytes / line.bytes_per_s for line in lines)

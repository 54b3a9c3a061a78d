"""The expected error of a sum of timed parts, and whether two sums differ by more than it.

Errors of parts are weighed by time and taken to go one way together, so that the whole's is no less than
the truth where they cancel. Parts at peak, or beyond the measured sizes, have no error: where they make
up more than a tenth of the time, neither has the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.display import exact_sum

if TYPE_CHECKING:
    from tracer.timing.calibration.answer import Estimate

    Parts = tuple[tuple[float, Estimate | None], ...]

KNOWN_SHARE = 0.9


def expected_error(parts: Parts) -> float | None:
    """Median relative error, weighed by seconds; None where too much of the time has none."""
    return _weighed(parts, [None if found is None else found.error for _, found in parts])


def expected_interval(parts: Parts, seconds: float, floor_seconds: float) -> tuple[float, float] | None:
    """Seconds around ``seconds`` by the ninetieth percentiles of the parts, never below the floor."""
    spread = _weighed(parts, [None if found is None else found.error_p90 for _, found in parts])
    if spread is None:
        return None
    return max(floor_seconds, seconds / (1 + spread)), seconds * (1 + spread)


def _weighed(parts: Parts, errors: list[float | None]) -> float | None:
    known = [(seconds, error) for (seconds, _), error in zip(parts, errors, strict=True) if error is not None]
    covered = exact_sum(seconds for seconds, _ in known)
    if not covered or covered < KNOWN_SHARE * exact_sum(seconds for seconds, _ in parts):
        return None
    return exact_sum(seconds * error for seconds, error in known) / covered

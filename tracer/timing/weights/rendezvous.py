"""What a rendezvous costs: ranks with sequences of different lengths wait for the longest.

Each round a rank takes (1 - v) + v·x, x of mean 1 and deviation ``cv``; all wait for the longest. The mean of
the longest of n is the integral of 1 - F(x)^n over x from 0, F the chance of a length up to x, so over many
rounds a mean rank waits 1 - mean/(mean of the longest).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, exp, log1p, sqrt

from tracer.display import exact_sum
from tracer.errors import ConfigError, finite_number, one_of, whole_number

SHAPES = ("normal", "lognormal", "uniform")
_REACH = 9.0
"""Deviations beyond which a normal draw is left out: one in 10^18 is as far."""
_STEPS = 4_096


@dataclass(frozen=True, slots=True)
class Waiting:
    """Share of a rank's time spent waiting, mean over ranks and rounds."""

    share: float
    ranks: int
    cv: float
    variable_share: float

    def __str__(self) -> str:
        return (
            f"{self.share:.1%} waiting ({self.ranks} ranks, CV {self.cv:.0%}, "
            f"{self.variable_share:.0%} of the time varies with length)"
        )


def waiting_share(ranks: int, cv: float, *, variable_share: float = 1.0, shape: str = "normal") -> Waiting:
    """How long a mean rank waits for the longest of all.

    ``variable_share`` v is the part of the time that grows with the sequences. Normal lengths are cut
    off at 0.

    >>> f"{waiting_share(4, 0.2).share:.4f}"
    '0.1707'

    Raises:
        ConfigError: for counts below 1, shares outside 0 to 1, or a CV the shape cannot have.
    """
    whole_number("rendezvous.ranks", ranks)
    varies = finite_number("rendezvous.variable_share", variable_share, zero=True, at_most=1)
    spread = finite_number("rendezvous.cv", cv, zero=True)
    one, longest = (_longest(shape, spread, count) for count in (1, ranks))
    mean, most = ((1 - varies) + varies * length for length in (one, longest))
    return Waiting(max(0.0, 1 - mean / most), ranks, cv, varies)


def _longest(shape: str, cv: float, ranks: int) -> float:
    """Mean of the longest of ``ranks`` lengths of mean 1."""
    one_of("rendezvous.shape", shape, SHAPES)
    if shape == "uniform":
        half = cv * 3**0.5
        if half > 1:
            rule = "is more than uniform lengths above 0 can vary (0.577)"
            raise ConfigError("rendezvous.cv", cv, rule, "try shape = 'lognormal'")
        return 1 + half * (ranks - 1) / (ranks + 1)
    if cv == 0:
        return 1.0
    if shape == "lognormal":
        sigma = sqrt(log1p(cv * cv))
        high = _REACH + sigma
        return _length(-_REACH, sigma) + _integral(-_REACH, high, ranks, lambda z: sigma * _length(z, sigma))
    low = max(-1 / cv, -_REACH)
    return max(0.0, 1 + cv * low) + _integral(low, _REACH, ranks, lambda z: cv)


def _length(z: float, sigma: float) -> float:
    """The lognormal length z deviations from the middle."""
    return exp(sigma * z - sigma * sigma / 2)


def _integral(low: float, high: float, ranks: int, slope: Callable[[float], float]) -> float:
    """∫ (1 - Φ(z)^ranks)·slope(z) dz by Simpson's rule."""
    width = (high - low) / _STEPS
    terms = []
    for step in range(_STEPS + 1):
        z = low + step * width
        weight = 1 if step in (0, _STEPS) else 4 if step % 2 else 2
        terms.append(weight * slope(z) * (1 - ((1 + erf(z / sqrt(2))) / 2) ** ranks))
    return exact_sum(terms) * width / 3

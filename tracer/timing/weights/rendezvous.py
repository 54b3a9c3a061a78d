"""What a rendezvous costs: ranks with sequences of different lengths wait for the longest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, finite_number, one_of, whole_number

if TYPE_CHECKING:
    import numpy as np

SHAPES = ("normal", "lognormal", "uniform")


@dataclass(frozen=True, slots=True)
class Waiting:
    """Share of a rank's time spent waiting, mean over ranks and rounds, with its standard error."""

    share: float
    error: float
    ranks: int
    cv: float
    variable_share: float

    def __str__(self) -> str:
        return (
            f"{self.share:.1%} ± {self.error:.2%} waiting ({self.ranks} ranks, CV {self.cv:.0%}, "
            f"{self.variable_share:.0%} of the time varies with length)"
        )


def waiting_share(
    ranks: int,
    cv: float,
    *,
    variable_share: float = 1.0,
    shape: str = "normal",
    trials: int = 20_000,
    seed: int = 0,
) -> Waiting:
    """Simulated: each round every rank takes (1 - v) + v·x, x drawn with mean 1 and deviation ``cv``.

    All wait for the longest: over many rounds the mean rank waits 1 - mean/mean of the longest.
    ``variable_share`` v is the part of the time that grows with the sequences. Normal draws are cut off at 0.

    Raises:
        ConfigError: for counts below 1, shares outside 0 to 1, or a CV the shape cannot have.
    """
    whole_number("rendezvous.ranks", ranks)
    whole_number("rendezvous.trials", trials, at_least=2)
    varies = finite_number("rendezvous.variable_share", variable_share, zero=True, at_most=1)
    lengths = _draws(shape, finite_number("rendezvous.cv", cv, zero=True), (trials, ranks), seed)
    times = (1 - varies) + varies * lengths
    longest, mean = times.max(axis=1), times.mean(axis=1)
    work = float(mean.mean() / longest.mean())
    error = float((mean - work * longest).std(ddof=1) / longest.mean() / trials**0.5)
    return Waiting(1 - work, error, ranks, cv, varies)


def _draws(
    shape: str, cv: float, size: tuple[int, int], seed: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Lengths with mean 1 and coefficient of variation ``cv``."""
    import numpy as np

    one_of("rendezvous.shape", shape, SHAPES)
    random = np.random.default_rng(seed)
    if shape == "lognormal":
        sigma = np.sqrt(np.log1p(cv * cv))
        return random.lognormal(-sigma * sigma / 2, sigma, size)
    if shape == "uniform":
        half = cv * 3**0.5
        if half > 1:
            rule = "is more than uniform lengths above 0 can vary (0.577)"
            raise ConfigError("rendezvous.cv", cv, rule, "try shape = 'lognormal'")
        return random.uniform(1 - half, 1 + half, size)
    return np.maximum(random.normal(1, cv, size), 0)

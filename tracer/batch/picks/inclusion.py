"""How often each expert is picked when k are drawn one after the other without repeats.

Drawing with weights p and striking out what was drawn (Plackett-Luce) is the same as letting expert i
ring after an exponential time of rate p_i and taking the first k to ring. Expert i is among them when
fewer than k others ring before it:

    π_i = ∫ p_i e^(-p_i t) · P(at most k-1 of the others rang by t) dt
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

POINTS = 600


def checked_popularity(popularity: Floats, top_k: int) -> Floats:
    """Weights ``[experts]`` float64 that add up to 1.

    Raises:
        ConfigError: for weights that are negative or not finite, or fewer than ``top_k`` above 0.
    """
    weights = np.asarray(popularity, np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
        raise ConfigError(
            "popularity", weights.tolist(), "must be numbers of 0 or more, one per expert", "mend the entry"
        )
    if int((weights > 0).sum()) < top_k:
        raise ConfigError(
            "popularity",
            weights.tolist(),
            f"must leave at least top_k = {top_k} experts above 0",
            "raise some entries",
        )
    shares: Floats = weights / weights.sum()
    return shares


def inclusion_probabilities(popularity: Floats, top_k: int) -> Floats:
    """π ``[experts]`` float64: the chance that each expert is among the k picks; the sum is k.

    Numerical to about 1e-10: a trapezoid in log t, where the integrand falls off at both ends.

    >>> np.round(inclusion_probabilities(np.array([2.0, 2, 1, 1, 1, 1, 1, 1]), 2)[[0, 7]], 4).tolist()
    [0.3833, 0.2056]

    Raises:
        ConfigError: as :func:`checked_popularity`.
    """
    weights = checked_popularity(popularity, top_k)
    live = np.flatnonzero(weights)
    found = np.zeros_like(weights)
    if len(live) == top_k:
        found[live] = 1.0
        return found
    rates = weights[live]
    log_t = np.linspace(-45.0, 6.0 - float(np.log(rates.min())), POINTS * 2)
    times = np.exp(log_t)
    rang = -np.expm1(-rates[:, None] * times)
    before = _arrivals(rang, top_k)
    after = _arrivals(rang[::-1], top_k)[::-1]
    step = log_t[1] - log_t[0]
    for place, expert in enumerate(live):
        others = _at_most(before[place], after[place + 1], top_k)
        density = rates[place] * times * np.exp(-rates[place] * times)
        found[expert] = float((density * others).sum() * step)
    return found


def _arrivals(rang: Floats, top_k: int) -> Floats:
    """``[experts + 1, top_k, points]``: chance that exactly j of the first i experts rang, j below k."""
    experts, points = rang.shape
    chances = np.zeros((experts + 1, top_k, points))
    chances[0, 0] = 1.0
    for expert in range(experts):
        chances[expert + 1] = chances[expert] * (1 - rang[expert])
        chances[expert + 1, 1:] += chances[expert, :-1] * rang[expert]
    return chances


def _at_most(first: Floats, second: Floats, top_k: int) -> Floats:
    """``[points]``: chance that two independent sets together ring at most k-1 times."""
    total = np.cumsum(second, axis=0)
    found: Floats = np.einsum("jp,jp->p", first, total[::-1])
    return found

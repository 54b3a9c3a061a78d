"""Keeping a router balanced: auxiliary loss, bias update, capacity, and a small simulation of collapse.

Sources: Switch Transformer (auxiliary loss α·E·Σ f·P; capacity factor); DeepSeek-V3 report, section
2.1.2 (a bias moved by a fixed step against the load, used for the choice and not for the weights).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.errors import ConfigError, one_of, whole_number
from tracer.model.router_kind import RouterKind
from tracer.model.routers import Router, choose, softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.picks.source import Picks

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

REMEDIES = ("none", "aux_loss", "bias")


def auxiliary_loss(probabilities: Floats, picks: Picks, alpha: float) -> float:
    """α·E·Σ f_i·P_i: f the share of picks an expert gets, P its mean probability; α when both are even.

    ``probabilities``: ``[tokens, experts]``; ``picks``: ``[tokens, k]``.

    >>> even = np.full((4, 4), 0.25)
    >>> auxiliary_loss(even, np.array([[0], [1], [2], [3]]), 0.01)
    0.01
    """
    experts = probabilities.shape[1]
    shares = np.bincount(picks.ravel(), minlength=experts) / picks.size
    return float(alpha * experts * (shares * probabilities.mean(0)).sum())


def updated_bias(bias: Floats, load: Ints, step: float) -> Floats:
    """Biases after one step: down for experts above the mean load, up for those below it."""
    found: Floats = bias + step * np.sign(load.mean() - load)
    return found


def capacity(tokens: int, top_k: int, experts: int, factor: float) -> int:
    """Rows an expert may take: ceil(factor · tokens · k / experts).

    >>> capacity(4096, 2, 8, 1.25)
    1280
    """
    if not 0 < factor < 1e9:
        raise ConfigError("capacity_factor", factor, "must be a number above 0", "try 1.25")
    return int(np.ceil(factor * tokens * top_k / experts))


def dropped(picks: Picks, experts: int, limit: int) -> NDArray[np.bool_]:
    """Which picks ``[tokens, k]`` come after their expert is full, tokens in order, first picks first."""
    whole_number("capacity", limit, at_least=0)
    flat = picks.ravel().astype(np.int64)
    order = np.argsort(flat, kind="stable")
    counts = np.bincount(flat, minlength=experts)
    starts = np.cumsum(counts) - counts
    place = np.empty(len(flat), np.int64)
    place[order] = np.arange(len(flat)) - np.repeat(starts, counts)
    return (place >= limit).reshape(picks.shape)


@dataclass(frozen=True, slots=True)
class Collapse:
    """How loads spread over training steps.

    ``imbalance``: ``[steps]`` max/mean of the experts' loads; ``busy_share``: ``[steps]`` share of picks
    that the busiest tenth of the experts gets; ``dead``: experts without a token in the last step.
    """

    remedy: str
    imbalance: Floats
    busy_share: Floats
    dead: int


def simulate_collapse(
    remedy: str,
    *,
    experts: int = 32,
    top_k: int = 2,
    tokens: int = 1024,
    steps: int = 200,
    rate: float = 0.05,
    alpha: float = 4.0,
    bias_step: float = 0.01,
    seed: int = 0,
) -> Collapse:
    """A toy of routing collapse: an expert that gets more tokens learns more, and is liked more.

    Every token has a fixed taste (normal logits); every expert an appeal that grows by ``rate`` times its
    load above the mean. ``aux_loss`` also moves the appeal down the gradient of the loss; ``bias`` leaves it
    alone and moves a bias by ``bias_step`` that only enters the choice. A small ``alpha`` loses to the
    rate, a large one holds. An illustration, not a training run.

    Raises:
        ConfigError: for an unknown remedy or sizes below 1.
    """
    one_of("remedy", remedy, REMEDIES)
    whole_number("steps", steps)
    rng = np.random.default_rng(seed)
    appeal, bias = rng.normal(0, 0.01, experts), np.zeros(experts)
    kind = RouterKind.SIGMOID_BIAS_TOPK if remedy == "bias" else RouterKind.SOFTMAX_TOPK
    router = Router(kind, top_k)
    imbalance, busy = np.empty(steps), np.empty(steps)
    load = np.zeros(experts, np.int64)
    for step in range(steps):
        logits = rng.normal(0, 1, (tokens, experts)) + appeal
        picks = choose(router, logits, bias if remedy == "bias" else None)
        load = np.bincount(picks.ravel(), minlength=experts)
        imbalance[step] = load.max() / load.mean()
        busy[step] = np.sort(load)[-max(1, experts // 10) :].sum() / load.sum()
        appeal = appeal + rate * (load / load.mean() - 1)
        if remedy == "aux_loss":
            appeal -= alpha * experts * _loss_slope(softmax(logits), load / load.sum())
        bias = updated_bias(bias, load, bias_step)
    return Collapse(remedy, imbalance, busy, int((load == 0).sum()))


def _loss_slope(probabilities: Floats, shares: Floats) -> Floats:
    """Slope of Σ f_i·P_i in each expert's appeal, f held fixed: mean of P_e·(f_e - Σ f_i P_i)."""
    weighed = probabilities @ shares
    slope: Floats = (probabilities * (shares - weighed[:, None])).mean(0)
    return slope

"""Imbalance against experts per GPU: more of them average their loads out, as far as skew lets them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.picks.inclusion import inclusion_probabilities
from tracer.errors import divisors

if TYPE_CHECKING:
    from tracer.batch.picks.draws import DrawnPicks

EXACT_EXPERTS = 1024


@dataclass(frozen=True, slots=True)
class AveragingPoint:
    """Loads when every GPU holds ``experts_per_gpu`` neighbouring experts.

    ``max_over_mean`` is the mean over batches, with its standard error; ``of_means`` is what stays
    however long the batch (the ratio of expected loads); ``time_lost`` is 1 - 1/max_over_mean.
    """

    experts_per_gpu: int
    gpus: int
    max_over_mean: float
    standard_error: float
    of_means: float
    time_lost: float

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


def averaging_curve(picks: DrawnPicks) -> list[AveragingPoint]:
    """One point for each number of GPUs that divides the experts; each layer of ``picks`` is a batch."""
    experts, batches = picks.experts, picks.layers
    loads = np.zeros((batches, experts), np.int64)
    for layer in range(batches):
        for start in range(0, picks.tokens, 1 << 18):
            block = picks.read(layer, start, min(start + (1 << 18), picks.tokens))
            loads[layer] += np.bincount(block.ravel(), minlength=experts)
    weights = picks.popularity if picks.popularity is not None else np.ones(experts)
    means = inclusion_probabilities(weights, picks.top_k) if experts <= EXACT_EXPERTS else loads.mean(0)
    points = []
    for gpus in divisors(experts, limit=64):
        if gpus == 1:
            continue
        by_gpu = loads.reshape(batches, gpus, -1).sum(2)
        ratios = by_gpu.max(1) / by_gpu.mean(1)
        expected = means.reshape(gpus, -1).sum(1)
        ratio = float(ratios.mean())
        error = float(ratios.std(ddof=1) / np.sqrt(batches)) if batches > 1 else float("nan")
        points.append(
            AveragingPoint(
                experts // gpus,
                gpus,
                ratio,
                error,
                float(expected.max() / expected.mean()),
                1 - 1 / ratio,
            )
        )
    return points

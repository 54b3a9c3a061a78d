"""A forward pipeline: stages in a row, micro-batches (requests, or chunks of a prompt) one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.errors import ConfigError, finite_number, whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Start and seconds of each stage's work on each micro-batch, ``[stages, micro-batches]`` float64."""

    start: NDArray[np.float64]
    seconds: NDArray[np.float64]

    @property
    def makespan(self) -> float:
        """Seconds until the last stage has done the last micro-batch."""
        return float(self.start[-1, -1] + self.seconds[-1, -1])

    @property
    def bubble(self) -> float:
        """Idle share of all stages' time from the first start to the last end."""
        share: float = 1.0 - float(self.seconds.sum()) / (self.makespan * self.start.shape[0])
        return share


def check_stages(stages: int, layers: int | None = None) -> int:
    """A number of stages that is no larger than the model's layers.

    Raises:
        ConfigError: otherwise.
    """
    whole_number("pipeline.stages", stages)
    if layers is not None and stages > layers:
        rule = f"is more stages than the model's {layers} layers"
        raise ConfigError("pipeline.stages", stages, rule, f"try {layers} or fewer stages")
    return stages


def run_pipeline(
    seconds: NDArray[np.float64] | Sequence[Sequence[float]], send_seconds: float = 0.0
) -> Pipeline:
    """Run ``seconds[stage][micro-batch]``; a micro-batch reaches the next stage ``send_seconds`` later.

    A stage works on micro-batches in order, one at a time; sending occupies no stage.

    Raises:
        ConfigError: for an empty or ragged table, or a time that is not above 0.
    """
    table = _table(seconds)
    send = finite_number("pipeline.send_seconds", send_seconds, zero=True, unit="seconds")
    start = np.zeros_like(table)
    arrived = np.zeros(table.shape[1])
    for stage in range(table.shape[0]):
        start[stage] = _in_order(arrived, table[stage])
        arrived = start[stage] + table[stage] + send
    return Pipeline(start, table)


def _in_order(ready: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Starts on one stage: each micro-batch when it is ready and the one before is done.

    start[m] = max over j ≤ m of (ready[j] + the seconds of j..m-1): one running maximum.
    """
    before = np.concatenate(([0.0], np.cumsum(seconds)[:-1]))
    starts: NDArray[np.float64] = before + np.maximum.accumulate(ready - before)
    return starts


def _table(seconds: NDArray[np.float64] | Sequence[Sequence[float]]) -> NDArray[np.float64]:
    try:
        table = np.asarray(seconds, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            "pipeline.seconds", seconds, "must be a table [stages][micro-batches] of numbers", "try [[1, 1]]"
        ) from error
    if table.ndim != 2 or table.size == 0:
        rule = "must be a table [stages][micro-batches] that is not empty"
        raise ConfigError("pipeline.seconds", f"shape {table.shape}", rule, "try [[1, 1]]")
    wrong = table[~(np.isfinite(table) & (table > 0))]
    if wrong.size:
        finite_number("pipeline.seconds", float(wrong[0]), unit="seconds")
    return table


def pipeline_bubble(stages: int, micro_batches: int) -> float:
    """Idle share with equal times and free sends: (S - 1) / (M + S - 1) (GPipe, arXiv 1811.06965).

    >>> pipeline_bubble(4, 12)
    0.2

    Raises:
        ConfigError: for counts below 1.
    """
    check_stages(stages)
    return (stages - 1) / (whole_number("pipeline.micro_batches", micro_batches) + stages - 1)

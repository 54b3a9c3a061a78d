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
    """Start and seconds of each chunk's work on each micro-batch, ``[chunks, micro-batches]`` float64.

    ``stage_of`` is the stage of each chunk; without virtual stages chunk n is stage n.
    """

    start: NDArray[np.float64]
    seconds: NDArray[np.float64]
    stage_of: tuple[int, ...]

    @property
    def stages(self) -> int:
        """Number of stages."""
        return max(self.stage_of) + 1

    @property
    def chunks(self) -> int:
        """Chunks a stage; 1 without virtual stages."""
        return len(self.stage_of) // self.stages

    @property
    def micro_batches(self) -> int:
        """Number of micro-batches."""
        return int(self.start.shape[1])

    @property
    def closed_bubble(self) -> float | None:
        """(S - 1)/(M·v + S - 1), even times and free sends; None for stages that go there and back."""
        in_turn = all(stage == chunk % self.stages for chunk, stage in enumerate(self.stage_of))
        return pipeline_bubble(self.stages, self.micro_batches, self.chunks) if in_turn else None

    @property
    def makespan(self) -> float:
        """Seconds until all work is done."""
        return float((self.start + self.seconds).max())

    @property
    def bubble(self) -> float:
        """Idle share of all stages' time from the first start to the last end."""
        share: float = 1.0 - float(self.seconds.sum()) / (self.makespan * self.stages)
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
    table = stage_times(seconds)
    send = finite_number("pipeline.send_seconds", send_seconds, zero=True, unit="seconds")
    start = np.zeros_like(table)
    arrived = np.zeros(table.shape[1])
    for stage in range(table.shape[0]):
        start[stage] = _in_order(arrived, table[stage])
        arrived = start[stage] + table[stage] + send
    return Pipeline(start, table, tuple(range(len(table))))


def _in_order(ready: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Starts on one stage: each micro-batch when it is ready and the one before is done.

    start[m] = max over j ≤ m of (ready[j] + the seconds of j..m-1): one running maximum.
    """
    before = np.concatenate(([0.0], np.cumsum(seconds)[:-1]))
    starts: NDArray[np.float64] = before + np.maximum.accumulate(ready - before)
    return starts


def stage_times(seconds: NDArray[np.float64] | Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """A table of seconds that is not empty and all above 0.

    Raises:
        ConfigError: otherwise.
    """
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


def pipeline_bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """Idle share with equal times and free sends: (S - 1) / (M·v + S - 1), v chunks a stage.

    GPipe, arXiv 1811.06965, section 2.3; interleaved, arXiv 2104.04473, section 2.2: the same idle time
    over v times as many turns, M a multiple of S.

    >>> pipeline_bubble(4, 12), pipeline_bubble(4, 12, 2)
    (0.2, 0.1111111111111111)

    Raises:
        ConfigError: for counts below 1.
    """
    check_stages(stages)
    turns = whole_number("pipeline.micro_batches", micro_batches) * whole_number("pipeline.chunks", chunks)
    return (stages - 1) / (turns + stages - 1)

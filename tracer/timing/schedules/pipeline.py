"""A forward pipeline: stages in a row, micro-batches (requests, or chunks of a prompt) one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tracer.display import exact_sum
from tracer.errors import ConfigError, finite_number, whole_number

Table = tuple[tuple[float, ...], ...]
"""Seconds, a row a stage or chunk, a column a micro-batch."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Start and seconds of each chunk's work on each micro-batch, ``[chunks][micro-batches]``.

    ``stage_of`` is the stage of each chunk; without virtual stages chunk n is stage n.
    """

    start: Table
    seconds: Table
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
        return len(self.start[0])

    @property
    def closed_bubble(self) -> float | None:
        """(S - 1)/(M·v + S - 1), even times and free sends; None for stages that go there and back."""
        in_turn = all(stage == chunk % self.stages for chunk, stage in enumerate(self.stage_of))
        return pipeline_bubble(self.stages, self.micro_batches, self.chunks) if in_turn else None

    @property
    def makespan(self) -> float:
        """Seconds until all work is done."""
        return max(
            begin + spent
            for starts, row in zip(self.start, self.seconds, strict=True)
            for begin, spent in zip(starts, row, strict=True)
        )

    @property
    def bubble(self) -> float:
        """Idle share of all stages' time from the first start to the last end."""
        return 1.0 - exact_sum(spent for row in self.seconds for spent in row) / (self.makespan * self.stages)


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


def run_pipeline(seconds: Sequence[Sequence[float]], send_seconds: float = 0.0) -> Pipeline:
    """Run ``seconds[stage][micro-batch]``; a micro-batch reaches the next stage ``send_seconds`` later.

    A stage works on micro-batches in order, one at a time; sending occupies no stage.

    Raises:
        ConfigError: for an empty or ragged table, or a time that is not above 0.
    """
    table = stage_times(seconds)
    send = finite_number("pipeline.send_seconds", send_seconds, zero=True, unit="seconds")
    start: list[tuple[float, ...]] = []
    arrived: Sequence[float] = (0.0,) * len(table[0])
    for row in table:
        start.append(_in_order(arrived, row))
        arrived = [begin + spent + send for begin, spent in zip(start[-1], row, strict=True)]
    return Pipeline(tuple(start), table, tuple(range(len(table))))


def _in_order(ready: Sequence[float], seconds: Sequence[float]) -> tuple[float, ...]:
    """Starts on one stage: each micro-batch when it is ready and the one before is done.

    start[m] = max over j ≤ m of (ready[j] + the seconds of j..m-1): one running maximum.
    """
    before = (0.0, *accumulate(seconds[:-1]))
    latest = accumulate((at - gone for at, gone in zip(ready, before, strict=True)), max)
    return tuple(gone + late for gone, late in zip(before, latest, strict=True))


def stage_times(seconds: Sequence[Sequence[float]]) -> Table:
    """A table of seconds that is not empty and all above 0.

    Raises:
        ConfigError: otherwise.
    """
    try:
        table = tuple(tuple(float(value) for value in row) for row in seconds)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            "pipeline.seconds", seconds, "must be a table [stages][micro-batches] of numbers", "try [[1, 1]]"
        ) from error
    widths = {len(row) for row in table}
    if len(widths) != 1 or widths == {0}:
        rule = "must be a table [stages][micro-batches] that is not empty, with rows of one length"
        raise ConfigError("pipeline.seconds", f"rows of {sorted(widths)}", rule, "try [[1, 1]]")
    for row in table:
        for value in row:
            finite_number("pipeline.seconds", value, unit="seconds")
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

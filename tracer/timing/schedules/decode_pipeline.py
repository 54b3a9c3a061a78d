"""Decode through a pipeline: a token comes out of the last stage before its successor enters the first."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.errors import finite_number, whole_number
from tracer.timing.schedules.pipeline import check_stages


@dataclass(frozen=True, slots=True)
class DecodePipeline:
    """``start``: ``[steps][stages][micro-batches]`` seconds; every cell lasts ``stage_seconds``."""

    start: tuple[tuple[tuple[float, ...], ...], ...]
    stage_seconds: float

    @property
    def shape(self) -> tuple[int, int, int]:
        """(steps, stages, micro-batches)."""
        return len(self.start), len(self.start[0]), len(self.start[0][0])

    @property
    def makespan(self) -> float:
        """Seconds until the last token of the last micro-batch is out."""
        return max(begin for step in self.start for row in step for begin in row) + self.stage_seconds

    @property
    def bubble(self) -> float:
        """Idle share of all stages' time."""
        steps, stages, groups = self.shape
        return 1.0 - steps * stages * groups * self.stage_seconds / (self.makespan * stages)

    @property
    def seconds_per_token(self) -> float:
        """Time between tokens of one request at the end of the run (its TPOT); the whole run if one step."""
        ends = [step[-1][0] for step in self.start]
        return ends[-1] - ends[-2] if len(ends) > 1 else self.makespan


def run_decode(
    stages: int, micro_batches: int, steps: int, stage_seconds: float, send_seconds: float = 0.0
) -> DecodePipeline:
    """``steps`` tokens of ``micro_batches`` groups of requests over ``stages`` equal stages.

    Stages take groups in turn. ``send_seconds`` passes between stages, and from the last back to the first.

    Raises:
        ConfigError: for counts below 1 or a time that is not above 0 (sending: below 0).
    """
    check_stages(stages)
    groups = whole_number("pipeline.micro_batches", micro_batches)
    rounds = whole_number("pipeline.steps", steps)
    cell = finite_number("pipeline.stage_seconds", stage_seconds, unit="seconds")
    send = finite_number("pipeline.send_seconds", send_seconds, zero=True, unit="seconds")
    start = [[[0.0] * groups for _ in range(stages)] for _ in range(rounds)]
    free = [0.0] * stages
    back = [0.0] * groups
    for step in range(rounds):
        for group in range(groups):
            ready = back[group]
            for stage in range(stages):
                begin = max(ready, free[stage])
                start[step][stage][group] = begin
                free[stage] = begin + cell
                ready = begin + cell + send
            back[group] = ready
    return DecodePipeline(tuple(tuple(map(tuple, step)) for step in start), cell)


def decode_bubble(stages: int, micro_batches: int) -> float:
    """Idle share once decode runs steadily: 1 - M/S for M < S groups, else 0.

    >>> decode_bubble(4, 3), decode_bubble(4, 8)
    (0.25, 0.0)

    Raises:
        ConfigError: for counts below 1.
    """
    check_stages(stages)
    return max(0.0, 1.0 - whole_number("pipeline.micro_batches", micro_batches) / stages)

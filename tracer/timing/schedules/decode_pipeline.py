"""Decode through a pipeline: a token comes out of the last stage before its successor enters the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from tracer.errors import ConfigError, finite_number, whole_number
from tracer.timing.schedules.pipeline import check_stages


@dataclass(frozen=True, slots=True)
class DecodePipeline:
    """``start``: ``[steps][chunks][groups]`` seconds; every cell lasts ``cell_seconds``.

    ``stage_of`` is the stage of each chunk; without virtual stages chunk n is stage n.
    """

    start: tuple[tuple[tuple[float, ...], ...], ...]
    cell_seconds: float
    stage_of: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(steps, chunks of all stages, groups)."""
        return len(self.start), len(self.start[0]), len(self.start[0][0])

    @property
    def stages(self) -> int:
        """Number of stages."""
        return max(self.stage_of) + 1

    @property
    def groups(self) -> int:
        """Groups of requests."""
        return self.shape[2]

    @property
    def steady_bubble(self) -> float | None:
        """:func:`decode_bubble`, even times and free sends; None for stages that go there and back."""
        in_turn = all(stage == chunk % self.stages for chunk, stage in enumerate(self.stage_of))
        return decode_bubble(self.stages, self.groups) if in_turn else None

    @property
    def makespan(self) -> float:
        """Seconds until the last token of the last group is out."""
        return max(begin for step in self.start for row in step for begin in row) + self.cell_seconds

    @property
    def bubble(self) -> float:
        """Idle share of all stages' time."""
        steps, chunks, groups = self.shape
        return 1.0 - steps * chunks * groups * self.cell_seconds / (self.makespan * self.stages)

    @property
    def seconds_per_token(self) -> float:
        """Time between tokens of one request at the end of the run (its TPOT); the whole run if one step."""
        ends = [step[-1][0] for step in self.start]
        return ends[-1] - ends[-2] if len(ends) > 1 else self.makespan


def run_decode(
    stage_of: int | Sequence[int], groups: int, steps: int, cell_seconds: float, send_seconds: float = 0.0
) -> DecodePipeline:
    """``steps`` tokens of each of ``groups`` groups of requests through equal chunks.

    ``stage_of`` gives each chunk's stage, or is a number of stages with one chunk each. A stage takes what
    arrived first, then the earlier token, the earlier chunk and the earlier group. ``send_seconds`` passes
    between chunks of different stages, and from the last chunk back to the first.

    >>> run_decode(2, 2, 3, 1.0).seconds_per_token, run_decode((0, 1, 1, 0), 2, 9, 1.0).seconds_per_token
    (2.0, 6.0)

    Raises:
        ConfigError: for counts below 1, chunks without a stage, or a time that is not above 0 (sending:
            below 0).
    """
    where = _stages_of(stage_of)
    count = whole_number("pipeline.micro_batches", groups)
    rounds = whole_number("pipeline.steps", steps)
    cell = finite_number("pipeline.cell_seconds", cell_seconds, unit="seconds")
    send = finite_number("pipeline.send_seconds", send_seconds, zero=True, unit="seconds")
    chunks = len(where)
    start = [[[0.0] * count for _ in range(chunks)] for _ in range(rounds)]
    free = [0.0] * (max(where) + 1)
    arrivals = [(0.0, 0, 0, group) for group in range(count)]
    while arrivals:
        ready, step, chunk, group = heappop(arrivals)
        stage = where[chunk]
        begin = max(ready, free[stage])
        start[step][chunk][group] = begin
        free[stage] = end = begin + cell
        after = (chunk + 1) % chunks
        arrives = end + (0.0 if after and where[after] == stage else send)
        if after or step + 1 < rounds:
            heappush(arrivals, (arrives, step + (after == 0), after, group))
    return DecodePipeline(tuple(tuple(map(tuple, step)) for step in start), cell, where)


def _stages_of(stage_of: int | Sequence[int]) -> tuple[int, ...]:
    """The stage of each chunk."""
    if not isinstance(stage_of, Sequence):
        return tuple(range(check_stages(stage_of)))
    where = tuple(stage_of)
    if sorted(set(where)) != list(range(max(where, default=-1) + 1)) or not where:
        rule = "must give each chunk a stage, none left out"
        raise ConfigError("pipeline.stage_of", list(where), rule, "try [0, 1]")
    return where


def decode_bubble(stages: int, micro_batches: int) -> float:
    """Idle share once decode runs steadily: 1 - M/S for M < S groups, else 0.

    >>> decode_bubble(4, 3), decode_bubble(4, 8)
    (0.25, 0.0)

    Raises:
        ConfigError: for counts below 1.
    """
    check_stages(stages)
    return max(0.0, 1.0 - whole_number("pipeline.micro_batches", micro_batches) / stages)

"""DualPipe: a training schedule that feeds micro-batches from both ends of the pipeline.

Each stage holds layers of both directions, so a forward chunk of one direction overlaps a backward
chunk of the other (DeepSeek-V3 report, section 3.2.1; deepseek-ai/DualPipe, README and dualpipe.py).
It trains: serving has no backward pass, and overlaps two batches instead (``overlap``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from tracer.errors import ConfigError, whole_number
from tracer.timing.checks import check_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class Work(IntEnum):
    """What a cell of the schedule does; codes are those of ``Schedule.kind``."""

    FORWARD = 0
    BACKWARD = 1
    BACKWARD_INPUT = 2
    WEIGHTS = 3
    OVERLAPPED = 4


WORK_NAMES = ("forward", "backward", "backward for inputs", "backward for weights", "forward & backward")

Cell = tuple[Work, int, int]
"""(what, direction of the forward part, direction of the backward part); -1 where there is no such part.

Direction 0 enters at stage 0, direction 1 at the last stage.
"""


@dataclass(frozen=True, slots=True)
class ChunkTimes:
    """Seconds of one chunk on one stage.

    ``backward`` is the whole backward pass, ``weights`` its part for weights alone; ``overlapped`` is a
    forward and a backward chunk that hide each other's communication.

    Raises:
        ConfigError: for times that are not above 0, or weights that leave no backward for inputs.
    """

    forward: float
    backward: float
    weights: float
    overlapped: float

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_seconds(f"chunk.{name}", getattr(self, name))
        if self.weights >= self.backward:
            raise ConfigError(
                "chunk.weights",
                self.weights,
                f"must be less than chunk.backward = {self.backward}, of which it is a part",
                f"try {self.backward / 2:g}",
            )

    def of(self, work: Work) -> float:
        """Seconds of a cell."""
        return (
            self.forward, self.backward, self.backward - self.weights, self.weights, self.overlapped
        )[work]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schedule:
    """Cells of a schedule as columns, stage by stage in time order.

    ``start`` and ``seconds``: [cells] float64; ``stage``: [cells] int32; ``kind``: [cells] int8, a
    :class:`Work`; ``forward_batch`` and ``backward_batch``: [cells] int32, the micro-batch of that part
    (direction 1 counts on after direction 0), -1 where there is none.
    """

    stages: int
    micro_batches: int
    start: NDArray[np.float64]
    seconds: NDArray[np.float64]
    stage: NDArray[np.int32]
    kind: NDArray[np.int8]
    forward_batch: NDArray[np.int32]
    backward_batch: NDArray[np.int32]

    @property
    def makespan(self) -> float:
        """Seconds from the first cell's start to the last one's end."""
        return float((self.start + self.seconds).max())

    @property
    def busy_seconds(self) -> NDArray[np.float64]:
        """Seconds each stage works, [stages]."""
        return np.bincount(self.stage, self.seconds, self.stages).astype(np.float64)

    @property
    def bubble_seconds(self) -> NDArray[np.float64]:
        """Seconds each stage idles before the last stage is done, [stages]."""
        return self.makespan - self.busy_seconds


def dualpipe(stages: int, micro_batches: int, times: ChunkTimes) -> Schedule:
    """The schedule of ``micro_batches`` (half from each end) over ``stages``; sending takes no time.

    Raises:
        ConfigError: for an odd number of either, or fewer than two micro-batches a stage.
    """
    _check(stages, micro_batches)
    cells = [list(_cells(stage, stages, micro_batches)) for stage in range(stages)]
    return _timed(cells, stages, micro_batches, times)


def bubble_closed_form(stages: int, times: ChunkTimes, schedule: str = "dualpipe") -> float:
    """Idle seconds of a stage: deepseek-ai/DualPipe's README, for ``dualpipe``, ``1f1b`` and ``zb1p``.

    DualPipe: (PP/2 - 1)(F&B + B - 3W); 1F1B: (PP - 1)(F + B); ZB1P: (PP - 1)(F + B - 2W).

    Raises:
        ConfigError: for another schedule.
    """
    forward, backward, weights = times.forward, times.backward, times.weights
    forms = {
        "dualpipe": (stages / 2 - 1) * (times.overlapped + backward - 3 * weights),
        "1f1b": (stages - 1) * (forward + backward),
        "zb1p": (stages - 1) * (forward + backward - 2 * weights),
    }
    if schedule not in forms:
        raise ConfigError("schedule", schedule, f"must be one of {', '.join(forms)}", "try 'dualpipe'")
    return forms[schedule]


def _check(stages: int, micro_batches: int) -> None:
    whole_number("pipeline.stages", stages, at_least=2)
    whole_number("pipeline.micro_batches", micro_batches, at_least=2)
    if stages % 2:
        raise ConfigError("pipeline.stages", stages, "must be even for DualPipe", f"try {stages + 1}")
    if micro_batches % 2 or micro_batches < 2 * stages:
        raise ConfigError(
            "pipeline.micro_batches",
            micro_batches,
            f"must be even and at least 2 x {stages} stages for DualPipe",
            f"try {max(2 * stages, micro_batches + micro_batches % 2)}",
        )


def _cells(stage: int, stages: int, micro_batches: int) -> Iterator[Cell]:
    """Cells of one stage in order; the eight steps of the published implementation."""
    half = stages // 2
    depth = min(stage, stages - 1 - stage)
    near, far = (0, 1) if stage < half else (1, 0)
    warm, middle = half - depth - 1, depth == half - 1
    yield from [_forward(near)] * (2 * warm)
    yield from [_forward(near), _forward(far)] * (depth + 1)
    yield from [_input(far), _weights(), _forward(far)] * warm
    for turn in range(micro_batches // 2 - stages + depth + 1):
        if turn == 0 and middle:
            yield from (_forward(near), _backward(far))
        else:
            yield _both(near, far)
        yield _both(far, near)
    yield from [_backward(far), _both(far, near)] * warm
    yield from _cool_down(depth, near, far)
    yield from [_weights(), _input(near)] * warm
    yield from [_weights()] * (depth + 1)


def _cool_down(depth: int, near: int, far: int) -> Iterator[Cell]:
    """Backward chunks at the end; from half way on their weight parts are put off."""
    turns = depth + 1
    for turn in range(turns):
        late = 2 * turn >= turns if depth % 2 else 2 * turn > turns - 1
        later = late or (depth % 2 == 0 and turn == turns // 2)
        yield _input(far) if late else _backward(far)
        yield _input(near) if later else _backward(near)


def _forward(direction: int) -> Cell:
    return (Work.FORWARD, direction, -1)


def _backward(direction: int) -> Cell:
    return (Work.BACKWARD, -1, direction)


def _input(direction: int) -> Cell:
    return (Work.BACKWARD_INPUT, -1, direction)


def _weights() -> Cell:
    return (Work.WEIGHTS, -1, -1)


def _both(forward: int, backward: int) -> Cell:
    return (Work.OVERLAPPED, forward, backward)


def _timed(cells: list[list[Cell]], stages: int, micro_batches: int, times: ChunkTimes) -> Schedule:
    """Start of every cell: as soon as its stage is free and its input has arrived."""
    from tracer.timing.dualpipe_clock import clock

    return clock(cells, stages, micro_batches, times)

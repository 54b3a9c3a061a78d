"""DualPipe: a training schedule that feeds micro-batches from both ends of the pipeline.

Each stage holds layers of both directions, so a forward chunk of one direction overlaps a backward
chunk of the other (DeepSeek-V3 report, section 3.2.1; deepseek-ai/DualPipe, README and dualpipe.py).
It trains: serving has no backward pass, and overlaps two batches instead (``overlap``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError, whole_number
from tracer.timing.schedules.dualpipe_clock import Cell, ChunkTimes, ChunkWork, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator


WORK_NAMES = ("forward", "backward", "backward for inputs", "backward for weights", "forward & backward")

"""(what, direction of the forward part, direction of the backward part); -1 where there is no such part.

Direction 0 enters at stage 0, direction 1 at the last stage.
"""


def dualpipe(stages: int, micro_batches: int, times: ChunkTimes) -> Schedule:
    """The schedule of ``micro_batches`` (half from each end) over ``stages``; sending takes no time.

    Raises:
        ConfigError: for an odd number of either, or fewer than two micro-batches a stage.
    """
    _check(stages, micro_batches)
    cells = [list(_cells(stage, stages, micro_batches)) for stage in range(stages)]
    return _timed(cells, stages, micro_batches, times)


def dualpipe_bubble(stages: int, times: ChunkTimes, schedule: str = "dualpipe") -> float:
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
    return (ChunkWork.FORWARD, direction, -1)


def _backward(direction: int) -> Cell:
    return (ChunkWork.BACKWARD, -1, direction)


def _input(direction: int) -> Cell:
    return (ChunkWork.BACKWARD_INPUT, -1, direction)


def _weights() -> Cell:
    return (ChunkWork.WEIGHTS, -1, -1)


def _both(forward: int, backward: int) -> Cell:
    return (ChunkWork.OVERLAPPED, forward, backward)


def _timed(cells: list[list[Cell]], stages: int, micro_batches: int, times: ChunkTimes) -> Schedule:
    """Start of every cell: as soon as its stage is free and its input has arrived."""
    from tracer.timing.schedules.dualpipe_clock import clock

    return clock(cells, stages, micro_batches, times)

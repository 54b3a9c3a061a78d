"""When each cell of a two-way pipeline schedule runs: its stage is free and its input has arrived."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tracer.display import exact_sum
from tracer.errors import ConfigError, finite_number


class ChunkWork(IntEnum):
    """What a cell of the schedule does; codes are those of ``Schedule.kind``."""

    FORWARD = 0
    BACKWARD = 1
    BACKWARD_INPUT = 2
    WEIGHTS = 3
    OVERLAPPED = 4


Cell = tuple[ChunkWork, int, int]


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
            finite_number(f"chunk.{name}", getattr(self, name), unit="seconds")
        if self.weights >= self.backward:
            raise ConfigError(
                "chunk.weights",
                self.weights,
                f"must be less than chunk.backward = {self.backward}, of which it is a part",
                f"try {self.backward / 2:g}",
            )

    def of(self, work: ChunkWork) -> float:
        """Seconds of a cell."""
        return (
            self.forward, self.backward, self.backward - self.weights, self.weights, self.overlapped
        )[work]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schedule:
    """Cells of a schedule as columns, stage by stage in time order.

    Columns are ``[cells]``: ``kind`` is a :class:`ChunkWork`; ``forward_batch`` and ``backward_batch`` are
    the micro-batch of that part (direction 1 counts on after direction 0), -1 where there is none.
    """

    stages: int
    micro_batches: int
    start: tuple[float, ...]
    seconds: tuple[float, ...]
    stage: tuple[int, ...]
    kind: tuple[int, ...]
    forward_batch: tuple[int, ...]
    backward_batch: tuple[int, ...]

    @property
    def makespan(self) -> float:
        """Seconds from the first cell's start to the last one's end."""
        return max(begin + spent for begin, spent in zip(self.start, self.seconds, strict=True))

    @property
    def busy_seconds(self) -> tuple[float, ...]:
        """Seconds each stage works, [stages]."""
        own: list[list[float]] = [[] for _ in range(self.stages)]
        for stage, spent in zip(self.stage, self.seconds, strict=True):
            own[stage].append(spent)
        return tuple(exact_sum(row) for row in own)

    @property
    def bubble_seconds(self) -> tuple[float, ...]:
        """Seconds each stage idles before the last stage is done, [stages]."""
        whole = self.makespan
        return tuple(whole - busy for busy in self.busy_seconds)


class _Clock:
    """Finish times by direction, micro-batch and stage while stages are walked; lives for one call."""

    def __init__(self, cells: list[list[Cell]], stages: int, half: int, times: ChunkTimes) -> None:
        self.cells, self.stages, self.half = cells, stages, half
        self.seconds = [times.of(work) for work in ChunkWork]
        self.forward_done: list[list[list[float]]] = [[[] for _ in range(stages)] for _ in range(2)]
        self.backward_done: list[list[list[float]]] = [[[] for _ in range(stages)] for _ in range(2)]
        self.free = [0.0] * stages
        self.place = [0] * stages
        self.rows: list[list[tuple[float, float, int, int, int]]] = [[] for _ in range(stages)]

    def run(self) -> None:
        """Walk stages until all cells are placed; a stage that waits is taken up again by its neighbours."""
        waiting = list(range(self.stages))
        while waiting:
            stage = waiting.pop()
            if self._advance(stage):
                waiting += [near for near in (stage - 1, stage + 1) if 0 <= near < self.stages]

    def _advance(self, stage: int) -> bool:
        """Place this stage's cells until one waits for an input; whether any was placed."""
        before = self.place[stage]
        cells = self.cells[stage]
        while self.place[stage] < len(cells):
            work, forward, backward = cells[self.place[stage]]
            ready = self._ready(stage, forward, backward)
            if ready < 0:
                break
            self._put(stage, work, forward, backward, ready)
        return self.place[stage] > before

    def _ready(self, stage: int, forward: int, backward: int) -> float:
        """When the inputs of a cell are there; -1 while one is not yet placed."""
        ready = 0.0
        if forward >= 0:
            source = stage - 1 if forward == 0 else stage + 1
            if 0 <= source < self.stages:
                done = self.forward_done[forward][source]
                batch = len(self.forward_done[forward][stage])
                if batch >= len(done):
                    return -1.0
                ready = done[batch]
        if backward >= 0:
            source = stage + 1 if backward == 0 else stage - 1
            inside = 0 <= source < self.stages
            done = self.backward_done[backward][source] if inside else self.forward_done[backward][stage]
            batch = len(self.backward_done[backward][stage])
            if batch >= len(done):
                return -1.0
            ready = max(ready, done[batch])
        return ready

    def _put(self, stage: int, work: ChunkWork, forward: int, backward: int, ready: float) -> None:
        start = max(self.free[stage], ready)
        seconds = self.seconds[work]
        end = start + seconds
        self.free[stage] = end
        self.place[stage] += 1
        numbers = [-1, -1]
        for part, direction, done in ((0, forward, self.forward_done), (1, backward, self.backward_done)):
            if direction >= 0:
                numbers[part] = direction * self.half + len(done[direction][stage])
                done[direction][stage].append(end)
        self.rows[stage].append((start, seconds, int(work), numbers[0], numbers[1]))


def clock(cells: list[list[Cell]], stages: int, micro_batches: int, times: ChunkTimes) -> Schedule:
    """The schedule with its times, ``cells[stage]`` run in order on each stage."""
    walk = _Clock(cells, stages, micro_batches // 2, times)
    walk.run()
    columns = zip(*(row for rows in walk.rows for row in rows), strict=True)
    start, seconds, kind, forward_batch, backward_batch = columns
    stage = tuple(number for number, rows in enumerate(walk.rows) for _ in rows)
    return Schedule(stages, micro_batches, start, seconds, stage, kind, forward_batch, backward_batch)

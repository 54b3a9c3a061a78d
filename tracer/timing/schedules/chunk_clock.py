"""When each cell of a training schedule over chunks runs: its stage is free and its inputs have arrived.

A stage holds several chunks (virtual stages). A forward of a chunk waits for the chunk before it, a backward
for the chunk after it; sends are free. Micro-batches go through every chunk in the order they entered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.timing.schedules.dualpipe_clock import Cell, ChunkTimes, ChunkWork, Schedule

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Walk:
    """Finish times by chunk and micro-batch while stages are walked; lives for one call."""

    def __init__(self, cells: Sequence[Sequence[Cell]], stage_of: Sequence[int], times: ChunkTimes) -> None:
        self.cells, self.stage_of = cells, stage_of
        self.seconds = [times.of(work) for work in ChunkWork]
        self.forward: list[list[float]] = [[] for _ in stage_of]
        self.backward: list[list[float]] = [[] for _ in stage_of]
        self.free, self.place = [0.0] * len(cells), [0] * len(cells)
        self.rows: list[list[tuple[float, float, int, int, int]]] = [[] for _ in cells]

    def run(self) -> bool:
        """Place cells until none can be placed; whether all were."""
        moved = True
        while moved:
            advanced = [self._advance(stage) for stage in range(len(self.cells))]
            moved = any(advanced)
        return all(place == len(row) for place, row in zip(self.place, self.cells, strict=True))

    def _advance(self, stage: int) -> bool:
        before, cells = self.place[stage], self.cells[stage]
        while self.place[stage] < len(cells):
            work, forward, backward = cells[self.place[stage]]
            ready = max(self._forward_ready(forward), self._backward_ready(backward))
            if ready == float("inf"):
                break
            start = max(self.free[stage], ready)
            end = self.free[stage] = start + self.seconds[work]
            self.place[stage] += 1
            numbers = [-1, -1]
            for part, chunk, done in ((0, forward, self.forward), (1, backward, self.backward)):
                if chunk >= 0:
                    numbers[part] = len(done[chunk])
                    done[chunk].append(end)
            self.rows[stage].append((start, self.seconds[work], int(work), numbers[0], numbers[1]))
        return self.place[stage] > before

    def _forward_ready(self, chunk: int) -> float:
        """When the row of the chunk's next micro-batch is there."""
        return self._done(self.forward, chunk - 1, len(self.forward[chunk])) if chunk > 0 else 0.0

    def _backward_ready(self, chunk: int) -> float:
        """When the gradient of the chunk's next micro-batch is there, and its own forward is done."""
        if chunk < 0:
            return 0.0
        batch = len(self.backward[chunk])
        own = self._done(self.forward, chunk, batch)
        last = chunk == len(self.stage_of) - 1
        return own if last else max(own, self._done(self.backward, chunk + 1, batch))

    @staticmethod
    def _done(done: list[list[float]], chunk: int, batch: int) -> float:
        return done[chunk][batch] if batch < len(done[chunk]) else float("inf")


def chunk_clock(
    cells: Sequence[Sequence[Cell]], stage_of: Sequence[int], micro_batches: int, times: ChunkTimes
) -> Schedule:
    """The schedule with its times; a cell is (work, chunk of its forward, chunk of its backward), -1: none.

    Raises:
        AssertionError: for cells that wait for each other, which no schedule of ours has.
    """
    walk = _Walk(cells, stage_of, times)
    assert walk.run(), "cells wait for each other"
    start, seconds, kind, forward, backward = zip(*(row for rows in walk.rows for row in rows), strict=True)
    stage = tuple(number for number, rows in enumerate(walk.rows) for _ in rows)
    return Schedule(len(cells), micro_batches, start, seconds, stage, kind, forward, backward)

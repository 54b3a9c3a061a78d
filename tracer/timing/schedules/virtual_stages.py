"""A forward pipeline whose stages hold several chunks: interleaved, or there and back (V-shape).

Interleaved stages take micro-batches in groups as large as the pipeline is long: all of a group through
one chunk, then all of it through the next (Megatron-LM ``core/pipeline_parallel/schedules.py``). In a V a
stage takes whatever has arrived, work nearer to the end first.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from tracer.errors import ConfigError, finite_number
from tracer.timing.schedules.pipeline import Pipeline, Table, stage_times


def run_chunks(
    seconds: Sequence[Sequence[float]],
    stage_of: Sequence[int],
    send_seconds: float = 0.0,
) -> Pipeline:
    """Run ``seconds[chunk][micro-batch]``, chunk c on stage ``stage_of[c]``.

    A micro-batch reaches a chunk on another stage ``send_seconds`` after it left the one before; on the same
    stage at once. Sending occupies no stage.

    >>> even = [[1.0] * 4] * 4
    >>> run_chunks(even, (0, 1, 0, 1)).makespan, run_chunks(even, (0, 1, 1, 0)).makespan
    (9.0, 10.0)

    Raises:
        ConfigError: for an empty or ragged table, a time that is not above 0, or chunks without a stage.
    """
    table = stage_times(seconds)
    send = finite_number("pipeline.send_seconds", send_seconds, zero=True, unit="seconds")
    if len(stage_of) != len(table) or sorted(set(stage_of)) != list(range(max(stage_of, default=-1) + 1)):
        rule = f"must give each of {len(table)} chunks a stage, none left out"
        raise ConfigError("pipeline.stage_of", list(stage_of), rule, f"try {list(range(len(table)))}")
    stages = max(stage_of) + 1
    in_turn = all(stage == chunk % stages for chunk, stage in enumerate(stage_of))
    start = (_interleaved if in_turn else _greedy)(table, tuple(stage_of), send)
    return Pipeline(tuple(map(tuple, start)), table, tuple(stage_of))


def _interleaved(table: Table, stage_of: tuple[int, ...], send: float) -> list[list[float]]:
    """Groups of micro-batches lap by lap: nothing that a stage waits for comes later in this order."""
    chunks, batches = len(table), len(table[0])
    stages = max(stage_of) + 1
    start, free = [[0.0] * batches for _ in table], [0.0] * stages
    for first in range(0, batches, stages):
        for chunk in range(chunks):
            stage = stage_of[chunk]
            away = send if stages > 1 else 0.0
            for batch in range(first, min(first + stages, batches)):
                ready = start[chunk - 1][batch] + table[chunk - 1][batch] + away if chunk else 0.0
                start[chunk][batch] = max(free[stage], ready)
                free[stage] = start[chunk][batch] + table[chunk][batch]
    return start


def _greedy(table: Table, stage_of: tuple[int, ...], send: float) -> list[list[float]]:
    """A free stage takes what has arrived: the later chunk first, then the earlier micro-batch."""
    chunks, batches = len(table), len(table[0])
    start, free = [[0.0] * batches for _ in table], [0.0] * (max(stage_of) + 1)
    waiting: list[list[tuple[int, int]]] = [[] for _ in free]
    # (when, kind, chunk, micro-batch); kind 0: work arrives, kind 1: the chunk's stage looks for work.
    events: list[tuple[float, int, int, int]] = [(0.0, 0, 0, batch) for batch in range(batches)]
    while events:
        now, kind, chunk, batch = heappop(events)
        stage = stage_of[chunk]
        if kind == 0:
            heappush(waiting[stage], (-chunk, batch))
            heappush(events, (max(now, free[stage]), 1, chunk, batch))
            continue
        if free[stage] > now or not waiting[stage]:
            continue
        taken, number = heappop(waiting[stage])
        taken = -taken
        start[taken][number] = now
        end = free[stage] = now + table[taken][number]
        if waiting[stage]:
            heappush(events, (end, 1, taken, number))
        if taken + 1 < chunks:
            away = send if stage_of[taken + 1] != stage else 0.0
            heappush(events, (end + away, 0, taken + 1, number))
    return start

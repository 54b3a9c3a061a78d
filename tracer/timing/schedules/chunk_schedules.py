"""Training schedules of virtual stages: interleaved 1F1B, ZB-V and DualPipe-V.

- Interleaved 1F1B (Megatron-LM, arXiv 2104.04473, section 2.2): chunk c on stage c mod p; a stage idles
  (p - 1)(F + B) of a chunk, which is (p - 1)/(m·v + p - 1) of the time.
- ZB-V (arXiv 2405.15362, section 4; torch ``ScheduleZBVZeroBubble``): two chunks a stage, there and back,
  with the weights' part of the backward filling the holes. Where F, the backward for inputs and that for
  weights take equally long, no stage idles between its first and its last cell.
- DualPipe-V (deepseek-ai/DualPipe ``dualpipev.py``): DualPipe cut in half at the turn, so that p stages do
  what 2p did: a stage idles at most (p - 1)(F&B + B - 3W).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError, whole_number
from tracer.timing.schedules.chunk_clock import chunk_clock
from tracer.timing.schedules.dualpipe_clock import Cell, ChunkTimes, ChunkWork, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_SCHEDULES = ("interleaved", "zb_v", "dualpipe_v")
MAX_CELLS = 1 << 18


def interleaved_1f1b(stages: int, micro_batches: int, chunks: int, times: ChunkTimes) -> Schedule:
    """Forwards and backwards in turn, in groups of as many micro-batches as there are stages.

    Raises:
        ConfigError: for micro-batches that are no whole groups, or too many cells.
    """
    _check(stages, micro_batches, chunks)
    if micro_batches % stages:
        raise ConfigError(
            "pipeline.micro_batches",
            micro_batches,
            f"must be whole groups of {stages} stages for interleaved 1F1B",
            f"try {-(-micro_batches // stages) * stages}",
        )
    total = micro_batches * chunks
    cells = []
    for stage in range(stages):
        # Later stages start their first backward sooner (Megatron-LM core/pipeline_parallel/schedules.py).
        warm = min((stages - stage - 1) * 2 + (chunks - 1) * stages, total)
        forward = [_turn(turn, stages, chunks) * stages + stage for turn in range(total)]
        backward = [(chunks - 1 - _turn(turn, stages, chunks)) * stages + stage for turn in range(total)]
        row: list[Cell] = [(ChunkWork.FORWARD, chunk, -1) for chunk in forward[:warm]]
        for back in range(total):
            if warm + back < total:
                row.append((ChunkWork.FORWARD, forward[warm + back], -1))
            row.append((ChunkWork.BACKWARD, -1, backward[back]))
        cells.append(row)
    return chunk_clock(cells, [chunk % stages for chunk in range(stages * chunks)], micro_batches, times)


def _turn(turn: int, stages: int, chunks: int) -> int:
    """Which of a stage's chunks its ``turn``-th forward runs."""
    return turn // stages % chunks


def zb_v(stages: int, micro_batches: int, times: ChunkTimes) -> Schedule:
    """The zero-bubble V: at least 2·stages - 1 micro-batches.

    Raises:
        ConfigError: for fewer, or too many cells.
    """
    _check(stages, micro_batches, 2)
    if micro_batches < 2 * stages - 1:
        raise ConfigError(
            "pipeline.micro_batches",
            micro_batches,
            f"must be at least 2·{stages} - 1 for ZB-V",
            f"try {2 * stages - 1}",
        )
    cells = [list(_zb_v_cells(stage, stages, micro_batches)) for stage in range(stages)]
    return chunk_clock(cells, _there_and_back(stages), micro_batches, times)


def _there_and_back(stages: int) -> list[int]:
    return [*range(stages), *reversed(range(stages))]


def _zb_v_cells(stage: int, stages: int, batches: int) -> Iterator[Cell]:
    """Cells of one stage: fill, turn, then one forward and backward of each half in turn."""
    down, up = stage, 2 * stages - 1 - stage
    counts = {ChunkWork.FORWARD: [0, 0], ChunkWork.BACKWARD_INPUT: [0, 0], ChunkWork.WEIGHTS: [0, 0]}
    chunks = (down, up)

    def cell(work: ChunkWork, half: int) -> Cell:
        counts[work][half] += 1
        forward, backward = (chunks[half], -1) if work is ChunkWork.FORWARD else (-1, chunks[half])
        return (work, forward, backward) if work is not ChunkWork.WEIGHTS else (work, -1, -1)

    for _ in range(2 * (stages - stage) - 1):
        yield cell(ChunkWork.FORWARD, 0)
    for _ in range(stage):
        yield cell(ChunkWork.FORWARD, 1)
        yield cell(ChunkWork.FORWARD, 0)
    for _ in range(stages - stage):
        yield cell(ChunkWork.FORWARD, 1)
        yield cell(ChunkWork.BACKWARD_INPUT, 1)
        yield cell(ChunkWork.WEIGHTS, 1)
    while min(counts[ChunkWork.FORWARD]) < batches:
        if counts[ChunkWork.FORWARD][0] < batches:
            yield cell(ChunkWork.FORWARD, 0)
        yield cell(ChunkWork.BACKWARD_INPUT, 0)
        yield cell(ChunkWork.WEIGHTS, 0)
        if counts[ChunkWork.FORWARD][1] < batches:
            yield cell(ChunkWork.FORWARD, 1)
        yield cell(ChunkWork.BACKWARD_INPUT, 1)
        yield cell(ChunkWork.WEIGHTS, 1)
    for _ in range(stage):
        yield cell(ChunkWork.BACKWARD_INPUT, 0)
        yield cell(ChunkWork.BACKWARD_INPUT, 1)
    for _ in range(stages - stage):
        yield cell(ChunkWork.BACKWARD_INPUT, 0)
        yield cell(ChunkWork.WEIGHTS, 0)
    for half in (1, 0):
        while counts[ChunkWork.WEIGHTS][half] < batches:
            yield cell(ChunkWork.WEIGHTS, half)


def dualpipe_v(stages: int, micro_batches: int, times: ChunkTimes) -> Schedule:
    """DualPipe-V: forward and backward chunks of the two halves overlap; at least 2·stages micro-batches.

    Raises:
        ConfigError: for fewer, or too many cells.
    """
    _check(stages, micro_batches, 2)
    if micro_batches < 2 * stages:
        raise ConfigError(
            "pipeline.micro_batches",
            micro_batches,
            f"must be at least 2·{stages} for DualPipe-V",
            f"try {2 * stages}",
        )
    cells = [list(_dualpipe_v_cells(stage, stages, micro_batches)) for stage in range(stages)]
    return chunk_clock(cells, _there_and_back(stages), micro_batches, times)


def _dualpipe_v_cells(stage: int, stages: int, batches: int) -> Iterator[Cell]:
    """The eight steps of the published implementation, one stage's."""
    down, up = stage, 2 * stages - 1 - stage
    left = stages - stage - 1
    yield from [(ChunkWork.FORWARD, down, -1)] * (2 * left)
    yield from [(ChunkWork.FORWARD, down, -1), (ChunkWork.FORWARD, up, -1)] * (stage + 1)
    yield from [
        (ChunkWork.BACKWARD_INPUT, -1, up),
        (ChunkWork.WEIGHTS, -1, -1),
        (ChunkWork.FORWARD, up, -1),
    ] * left
    for turn in range(batches - 2 * stages + stage + 1):
        if turn == 0 and not left:
            yield from ((ChunkWork.FORWARD, down, -1), (ChunkWork.BACKWARD, -1, up))
        else:
            yield (ChunkWork.OVERLAPPED, down, up)
        yield (ChunkWork.OVERLAPPED, up, down)
    yield from [(ChunkWork.BACKWARD, -1, up), (ChunkWork.OVERLAPPED, up, down)] * left
    turns = stage + 1
    for turn in range(turns):
        late = 2 * turn >= turns if stage % 2 else 2 * turn > turns - 1
        later = late or (stage % 2 == 0 and turn == turns // 2)
        yield (ChunkWork.BACKWARD_INPUT if late else ChunkWork.BACKWARD, -1, up)
        yield (ChunkWork.BACKWARD_INPUT if later else ChunkWork.BACKWARD, -1, down)
    yield from [(ChunkWork.WEIGHTS, -1, -1), (ChunkWork.BACKWARD_INPUT, -1, down)] * left
    yield from [(ChunkWork.WEIGHTS, -1, -1)] * (stage + 1)


def chunk_idle_seconds(schedule: str, stages: int, times: ChunkTimes) -> float | None:
    """Seconds that a stage idles by the schedule's closed form; times are of one chunk.

    None for ZB-V, whose holes are filled only where its three parts take equally long.

    Raises:
        ConfigError: for another schedule.
    """
    forward, backward, weights = times.forward, times.backward, times.weights
    forms = {
        "interleaved": (stages - 1) * (forward + backward),
        "zb_v": None,
        "dualpipe_v": (stages - 1) * (times.overlapped + backward - 3 * weights),
    }
    if schedule not in forms:
        raise ConfigError("schedule", schedule, f"must be one of {', '.join(forms)}", "try 'interleaved'")
    return forms[schedule]


def _check(stages: int, micro_batches: int, chunks: int) -> None:
    whole_number("pipeline.stages", stages, at_least=2)
    whole_number("pipeline.micro_batches", micro_batches)
    whole_number("pipeline.chunks", chunks)
    if stages * micro_batches * chunks > MAX_CELLS:
        rule = f"over {stages} stages of {chunks} chunks are more than the {MAX_CELLS:,} cells that are timed"
        raise ConfigError("pipeline.micro_batches", micro_batches, rule, "take fewer micro-batches")

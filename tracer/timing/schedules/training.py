"""The same stages in training: DualPipe's schedule, and what 1F1B and ZB1P would idle, from a forward pass.

Serving has no backward pass and overlaps two batches instead (``overlap``); this is for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.display import exact_sum
from tracer.errors import ConfigError, whole_number
from tracer.timing.schedules.dualpipe import dualpipe, dualpipe_bubble
from tracer.timing.schedules.dualpipe_clock import ChunkTimes, Schedule
from tracer.traffic.line import layers_by_stage

if TYPE_CHECKING:
    from tracer.timing.pass_time import PassTime

SCHEDULES = ("dualpipe", "zb1p", "1f1b")
ASSUMPTION = (
    "every stage as slow as the slowest; gradients of inputs and of weights cost a forward pass's compute "
    "each, and dispatch and combine go back once; a forward and a backward chunk together take the longer "
    "of their compute and their exchange; sends are free"
)


@dataclass(frozen=True, slots=True)
class Training:
    """A schedule, the times of its chunks, and seconds a stage idles under each of ``SCHEDULES``."""

    times: ChunkTimes
    schedule: Schedule
    idle_seconds: tuple[tuple[str, float], ...]


def train(whole: PassTime, micro_batches: int) -> Training:
    """DualPipe over the stages of a pass, with at least ``micro_batches`` of its size.

    DualPipe needs an even number of them, and two a stage.

    Raises:
        ConfigError: for stages that DualPipe does not take.
    """
    stages = len(whole.stage_seconds)
    if stages < 2:
        raise ConfigError("mesh.pp", stages, "is one stage: there is no pipeline to fill", "try 2")
    asked = whole_number("micro_batches", micro_batches)
    times = chunk_times(whole)
    schedule = dualpipe(stages, max(2 * stages, asked + asked % 2), times)
    idle = tuple((name, dualpipe_bubble(stages, times, name)) for name in SCHEDULES)
    return Training(times, schedule, idle)


def chunk_times(whole: PassTime) -> ChunkTimes:
    """Seconds of a chunk on the slowest stage, as ``ASSUMPTION`` says."""
    scenario = whole.traffic.scenario
    stage = max(range(len(whole.stage_seconds)), key=lambda number: whole.stage_seconds[number])
    moe = layers_by_stage(scenario, scenario.model.is_moe)[stage]
    exchange = moe * exact_sum(each.seconds for each in whole.exchange.values())
    compute = whole.stage_seconds[stage] - exchange
    return ChunkTimes(
        forward=compute + exchange,
        backward=2 * compute + exchange,
        weights=compute,
        overlapped=max(3 * compute, 2 * exchange),
    )

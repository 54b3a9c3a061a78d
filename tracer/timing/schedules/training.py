"""The same stages in training: a schedule's timeline and what others would idle, from a forward pass.

One chunk a stage: DualPipe. Interleaved chunks: 1F1B of Megatron-LM. There and back: ZB-V and DualPipe-V.

Serving has no backward pass and overlaps two batches instead (``overlap``); this is for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.display import exact_sum
from tracer.errors import ConfigError, whole_number
from tracer.scenario.plan import ChunkOrder
from tracer.timing.schedules.chunk_schedules import chunk_idle_seconds, dualpipe_v, interleaved_1f1b, zb_v
from tracer.timing.schedules.dualpipe import dualpipe, dualpipe_bubble
from tracer.timing.schedules.dualpipe_clock import ChunkTimes, Schedule

if TYPE_CHECKING:
    from tracer.timing.pass_time import PassTime

SCHEDULES = ("dualpipe", "zb1p", "1f1b")
TITLES = {
    "dualpipe": "DualPipe",
    "zb1p": "ZB1P",
    "1f1b": "1F1B",
    "interleaved": "Interleaved 1F1B",
    "zb_v": "ZB-V",
    "dualpipe_v": "DualPipe-V",
}
ASSUMPTION = (
    "every chunk as slow as the slowest; gradients of inputs and of weights cost a forward pass's compute "
    "each, and dispatch and combine go back once; a forward and a backward chunk together take the longer "
    "of their compute and their exchange; sends are free"
)


@dataclass(frozen=True, slots=True)
class Training:
    """A schedule by name, the times of its chunks, and seconds that a stage idles by closed forms."""

    name: str
    times: ChunkTimes
    schedule: Schedule
    idle_seconds: tuple[tuple[str, float], ...]

    @property
    def title(self) -> str:
        """What the schedule is called."""
        return TITLES[self.name]

    @property
    def idle_inside(self) -> float:
        """Seconds that the worst stage idles between its own first and last cell."""
        found = self.schedule
        first: dict[int, float] = {}
        last: dict[int, float] = {}
        for stage, start, seconds in zip(found.stage, found.start, found.seconds, strict=True):
            first.setdefault(stage, start)
            last[stage] = start + seconds
        idle = (last[stage] - first[stage] - busy for stage, busy in enumerate(found.busy_seconds))
        return max(0.0, *idle)


def trainings(whole: PassTime, micro_batches: int) -> tuple[Training, ...]:
    """The schedules that the scenario's chunks admit, with at least ``micro_batches`` of the pass's size.

    Raises:
        ConfigError: for one stage, or stages that DualPipe does not take.
    """
    scenario, stages = whole.traffic.scenario, len(whole.stage_seconds)
    if stages < 2:
        raise ConfigError("mesh.pp", stages, "is one stage: there is no pipeline to fill", "try 2")
    asked, times = whole_number("micro_batches", micro_batches), chunk_times(whole)
    if scenario.plan.chunks == 1:
        return (train(whole, micro_batches),)
    if scenario.plan.chunk_order is ChunkOrder.INTERLEAVED:
        chunks, groups = scenario.plan.chunks, -(-asked // stages) * stages
        found = interleaved_1f1b(stages, groups, chunks, times)
        idle = chunk_idle_seconds("interleaved", stages, times)
        return (Training("interleaved", times, found, _named(interleaved=idle)),)
    there, both = (
        zb_v(stages, max(2 * stages - 1, asked), times),
        dualpipe_v(stages, max(2 * stages, asked), times),
    )
    idle = chunk_idle_seconds("dualpipe_v", stages, times)
    return (
        Training("zb_v", times, there, ()),
        Training("dualpipe_v", times, both, _named(dualpipe_v=idle)),
    )


def _named(**idle: float | None) -> tuple[tuple[str, float], ...]:
    return tuple((name, seconds) for name, seconds in idle.items() if seconds is not None)


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
    return Training("dualpipe", times, schedule, idle)


def chunk_times(whole: PassTime) -> ChunkTimes:
    """Seconds of the slowest chunk, as ``ASSUMPTION`` says."""
    scenario, seconds = whole.traffic.scenario, whole.chunk_seconds
    chunk = max(range(len(seconds)), key=seconds.__getitem__)
    moe = sum(map(scenario.model.is_moe, scenario.chunks[chunk].layers))
    exchange = moe * exact_sum(each.seconds for each in whole.exchange.values())
    compute = seconds[chunk] - exchange
    return ChunkTimes(
        forward=compute + exchange,
        backward=2 * compute + exchange,
        weights=compute,
        overlapped=max(3 * compute, 2 * exchange),
    )

"""Timelines as columns: who works when, for Gantt charts and trace viewers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.timing.schedules.decode_pipeline import DecodePipeline
    from tracer.timing.schedules.dualpipe_clock import Schedule
    from tracer.timing.schedules.pipeline import Pipeline
    from tracer.timing.schedules.streams import Placed
    from tracer.trip.clock import TripTime
    from tracer.trip.trip import Trip


@dataclass(frozen=True, slots=True)
class Timeline:
    """Slices as columns, in no order.

    ``start`` and ``seconds``: [slices] float64; ``row``: [slices] int32, an index into ``rows``; ``kind``:
    [slices] int16, an index into ``kinds``; ``labels``: one text a slice, or none at all.
    """

    title: str
    rows: tuple[str, ...]
    kinds: tuple[str, ...]
    start: NDArray[np.float64]
    seconds: NDArray[np.float64]
    row: NDArray[np.int32]
    kind: NDArray[np.int16]
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        lengths = {len(column) for column in (self.start, self.seconds, self.row, self.kind)}
        if self.labels is not None:
            lengths.add(len(self.labels))
        if len(lengths) > 1:
            rule = "must have columns of one length"
            raise ConfigError("timeline", f"lengths {sorted(lengths)}", rule, "give one entry a slice")

    def __len__(self) -> int:
        return len(self.start)

    @property
    def makespan(self) -> float:
        """End of the last slice in seconds; 0 without slices."""
        return float((self.start + self.seconds).max()) if len(self) else 0.0

    def label(self, index: int) -> str:
        """Text of a slice: its label, else its kind."""
        return self.labels[index] if self.labels is not None else self.kinds[self.kind[index]]


def from_slices(title: str, slices: Iterable[tuple[str, str, float, float, str]]) -> Timeline:
    """A timeline from (row, kind, start, seconds, label); rows and kinds in order of appearance."""
    table = list(slices)
    rows = tuple(dict.fromkeys(row for row, *_ in table))
    kinds = tuple(dict.fromkeys(kind for _, kind, *_ in table))
    return Timeline(
        title,
        rows,
        kinds,
        np.array([start for *_, start, _, _ in table], dtype=np.float64),
        np.array([seconds for *_, seconds, _ in table], dtype=np.float64),
        np.array([rows.index(row) for row, *_ in table], dtype=np.int32),
        np.array([kinds.index(kind) for _, kind, *_ in table], dtype=np.int16),
        tuple(label for *_, label in table),
    )


def of_streams(placed: Sequence[Placed], title: str = "streams") -> Timeline:
    """One row a stream; a task's kind is the last word of its name."""
    return from_slices(
        title,
        (
            (
                each.task.stream,
                each.task.name.rsplit(" ", 1)[-1],
                each.start,
                each.task.seconds,
                each.task.name,
            )
            for each in placed
        ),
    )


def of_pipeline(pipeline: Pipeline, title: str = "pipeline") -> Timeline:
    """One row per stage; kinds alternate over micro-batches; labels name those, and any chunks."""
    chunks, batches = pipeline.start.shape
    chunk, batch = np.divmod(np.arange(chunks * batches), batches)
    stages, stage = pipeline.stages, np.array(pipeline.stage_of)[chunk]
    several = chunks > stages
    names = [f", chunk {number}" if several else "" for number in chunk.tolist()]
    return Timeline(
        title,
        tuple(f"stage {number}" for number in range(stages)),
        ("even micro-batch", "odd micro-batch"),
        pipeline.start.reshape(-1),
        pipeline.seconds.reshape(-1),
        stage.astype(np.int32),
        (batch % 2).astype(np.int16),
        tuple(f"micro-batch {number}{name}" for number, name in zip(batch.tolist(), names, strict=True)),
    )


def of_decode(pipeline: DecodePipeline, title: str = "decode pipeline") -> Timeline:
    """One row per stage; one kind a group of requests; labels name the chunk where stages have several."""
    step, chunk, group = np.unravel_index(np.arange(pipeline.start.size), pipeline.start.shape)
    stages, several = pipeline.stages, len(pipeline.stage_of) > pipeline.stages
    stage, groups = np.array(pipeline.stage_of)[chunk], pipeline.groups
    names = [f", chunk {number}" if several else "" for number in chunk.tolist()]
    return Timeline(
        title,
        tuple(f"stage {number}" for number in range(stages)),
        tuple(f"group {number}" for number in range(groups)),
        pipeline.start.reshape(-1),
        np.full(pipeline.start.size, pipeline.cell_seconds),
        stage.astype(np.int32),
        group.astype(np.int16),
        tuple(
            f"group {g}, token {s}{name}"
            for g, s, name in zip(group.tolist(), step.tolist(), names, strict=True)
        ),
    )


def of_training(schedule: Schedule, title: str = "DualPipe") -> Timeline:
    """One row per stage; the kinds are those of the schedule's cells. No labels: there may be many cells."""
    from tracer.timing.schedules.dualpipe import WORK_NAMES

    return Timeline(
        f"{title} (training): {schedule.stages} stages, {schedule.micro_batches} micro-batches",
        tuple(f"stage {number}" for number in range(schedule.stages)),
        WORK_NAMES,
        schedule.start,
        schedule.seconds,
        schedule.stage,
        schedule.kind.astype(np.int16),
    )


def of_trip(trip: Trip, times: TripTime) -> Timeline:
    """One row per layer; hops one after the other, at link rate."""
    since = (0.0, *times.cumulative_seconds)
    return from_slices(
        f"{trip.scenario.name or 'trip'}: {times.assumption}",
        (
            (
                f"layer {hop.layer}" if hop.layer else "landing",
                str(hop.kind),
                start,
                spent.seconds,
                str(hop.kind),
            )
            for hop, start, spent in zip(trip.hops, since, times.hops, strict=False)
        ),
    )

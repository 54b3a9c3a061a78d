"""Timelines as columns: who works when, for Gantt charts and trace viewers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.timing.schedules.decode_pipeline import DecodePipeline
    from tracer.timing.schedules.dualpipe_clock import Schedule
    from tracer.timing.schedules.pipeline import Pipeline
    from tracer.timing.schedules.streams import Placed
    from tracer.trip.clock import TripTime
    from tracer.trip.trip import Trip


@dataclass(frozen=True, slots=True)
class Timeline:
    """Slices as columns, in no order.

    ``start`` and ``seconds``: ``[slices]`` seconds; ``row`` and ``kind``: ``[slices]``, an index into
    ``rows`` and into ``kinds``; ``labels``: one text a slice, or none at all.
    """

    title: str
    rows: tuple[str, ...]
    kinds: tuple[str, ...]
    start: Sequence[float]
    seconds: Sequence[float]
    row: Sequence[int]
    kind: Sequence[int]
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
        ends = (begin + spent for begin, spent in zip(self.start, self.seconds, strict=True))
        return max(ends, default=0.0)

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
        tuple(float(start) for *_, start, _, _ in table),
        tuple(float(seconds) for *_, seconds, _ in table),
        tuple(rows.index(row) for row, *_ in table),
        tuple(kinds.index(kind) for _, kind, *_ in table),
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
    stages, chunks, batches = pipeline.stages, len(pipeline.stage_of), pipeline.micro_batches
    places = [(chunk, batch) for chunk in range(chunks) for batch in range(batches)]
    names = [f", chunk {chunk}" if chunks > stages else "" for chunk in range(chunks)]
    return Timeline(
        title,
        tuple(f"stage {number}" for number in range(stages)),
        ("even micro-batch", "odd micro-batch"),
        tuple(pipeline.start[chunk][batch] for chunk, batch in places),
        tuple(pipeline.seconds[chunk][batch] for chunk, batch in places),
        tuple(pipeline.stage_of[chunk] for chunk, _ in places),
        tuple(batch % 2 for _, batch in places),
        tuple(f"micro-batch {batch}{names[chunk]}" for chunk, batch in places),
    )


def of_decode(pipeline: DecodePipeline, title: str = "decode pipeline") -> Timeline:
    """One row per stage; one kind a group of requests; labels name the chunk where stages have several."""
    steps, chunks, groups = pipeline.shape
    stages, several = pipeline.stages, chunks > pipeline.stages
    names = [f", chunk {chunk}" if several else "" for chunk in range(chunks)]
    places = [
        (step, chunk, group) for step in range(steps) for chunk in range(chunks) for group in range(groups)
    ]
    return Timeline(
        title,
        tuple(f"stage {number}" for number in range(stages)),
        tuple(f"group {number}" for number in range(groups)),
        tuple(pipeline.start[step][chunk][group] for step, chunk, group in places),
        (pipeline.cell_seconds,) * len(places),
        tuple(pipeline.stage_of[chunk] for _, chunk, _ in places),
        tuple(group for *_, group in places),
        tuple(f"group {group}, token {step}{names[chunk]}" for step, chunk, group in places),
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
        schedule.kind,
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

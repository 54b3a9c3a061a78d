"""Streams with events: work in order on each stream, waiting for named work on others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tracer.errors import ConfigError, finite_number


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work: its stream, its seconds (0 allowed), and the tasks whose events it waits for."""

    name: str
    stream: str
    seconds: float
    after: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        finite_number(f"task.{self.name}.seconds", self.seconds, zero=True, unit="seconds")


@dataclass(frozen=True, slots=True)
class Placed:
    """A task and when it starts."""

    task: Task
    start: float

    @property
    def end(self) -> float:
        """When it is done."""
        return self.start + self.task.seconds


def run_streams(tasks: Iterable[Task]) -> tuple[Placed, ...]:
    """Place tasks in the order given: each starts when its stream is free and its events have happened.

    A task may only wait for tasks before it in the list, as a stream only waits for recorded events.

    Raises:
        ConfigError: for a name that stands twice, or an event that is not recorded before.
    """
    placed: dict[str, Placed] = {}
    free: dict[str, float] = {}
    for task in tasks:
        if task.name in placed:
            raise ConfigError("task.name", task.name, "stands twice", "name each task once")
        for event in task.after:
            if event not in placed:
                rule = f"waits for {event!r}, which is not recorded before it"
                raise ConfigError(f"task.{task.name}", event, rule, "put that task first")
        events = (placed[event].end for event in task.after)
        start = max(free.get(task.stream, 0.0), max(events, default=0.0))
        placed[task.name] = Placed(task, start)
        free[task.stream] = start + task.seconds
    return tuple(placed.values())


def makespan(placed: Iterable[Placed]) -> float:
    """When the last task is done; 0 without tasks."""
    return max((each.end for each in placed), default=0.0)

"""Two micro-batches on two streams: one computes while the other communicates.

Serving's overlap (DeepSeek-V3 report, section 3.4; SGLang's two-batch overlap). Splitting a batch has a
price: each half reads the same weights, so times of halves are given apart from those of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracer.errors import finite_number, whole_number
from tracer.timing.schedules.streams import Placed, Task, makespan, run_streams

COMPUTE, COMMUNICATION = "compute", "communication"
STEPS = (
    ("attention", COMPUTE),
    ("dispatch", COMMUNICATION),
    ("shared", COMPUTE),
    ("experts", COMPUTE),
    ("combine", COMMUNICATION),
)
"""Work of one MoE layer in order; the shared expert needs no dispatched token."""


@dataclass(frozen=True, slots=True)
class MoeTimes:
    """Seconds of one MoE layer's work for one (micro-)batch; the shared expert may take none.

    Raises:
        ConfigError: for a time below 0, or of 0 where there is work.
    """

    attention: float
    dispatch: float
    shared: float
    experts: float
    combine: float

    def __post_init__(self) -> None:
        for name in self.__slots__:
            finite_number(f"overlap.{name}", getattr(self, name), zero=name == "shared", unit="seconds")

    @property
    def compute(self) -> float:
        """Seconds on the compute stream."""
        return self.attention + self.shared + self.experts

    @property
    def communication(self) -> float:
        """Seconds on the communication stream."""
        return self.dispatch + self.combine

    @property
    def total(self) -> float:
        """Seconds of all work, one after the other."""
        return self.compute + self.communication

    def halved(self) -> MoeTimes:
        """Half of every time: a micro-batch when nothing has a fixed cost."""
        return MoeTimes(*(getattr(self, name) / 2 for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Overlap:
    """Layers with one batch in sequence, and with two halves overlapped.

    ``sequential_seconds`` runs the whole batch step by step. ``gain`` is the throughput gained (negative
    when splitting costs more than it hides), ``bound`` the most any order could gain over the same halves
    in sequence: all work over the fuller stream. ``exposed_seconds`` is time in which no compute runs.
    """

    placed: tuple[Placed, ...]
    seconds: float
    sequential_seconds: float
    halves_seconds: float
    compute_seconds: float
    communication_seconds: float

    @property
    def gain(self) -> float:
        """Throughput against the whole batch in sequence, less 1."""
        return self.sequential_seconds / self.seconds - 1

    @property
    def bound(self) -> float:
        """Largest gain that hiding alone can give: halves in sequence over the fuller stream, less 1."""
        return self.halves_seconds / max(self.compute_seconds, self.communication_seconds) - 1

    @property
    def exposed_seconds(self) -> float:
        """Seconds in which the compute stream is idle."""
        return self.seconds - self.compute_seconds


def overlap_two(whole: MoeTimes, half: MoeTimes | None = None, layers: int = 1) -> Overlap:
    """``layers`` equal MoE layers: ``whole`` in sequence against two of ``half`` (default: halved).

    Raises:
        ConfigError: for no layers.
    """
    half = half or whole.halved()
    placed = run_streams(_tasks(half, whole_number("overlap.layers", layers)))
    return Overlap(
        placed,
        makespan(placed),
        whole.total * layers,
        2 * half.total * layers,
        2 * half.compute * layers,
        2 * half.communication * layers,
    )


def _tasks(half: MoeTimes, layers: int) -> Iterator[Task]:
    """Tasks in issue order: micro-batch B follows A by one step, so that each computes while the other sends.

    A attention | B attention | A shared, experts | B shared, experts, while A's dispatch and combine run
    beside B's compute and the other way round.
    """
    for layer in range(1, layers + 1):
        for batch in "AB":
            yield _task("attention", batch, layer, half, ("combine", layer - 1) if layer > 1 else None)
            yield _task("dispatch", batch, layer, half, ("attention", layer))
        for batch in "AB":
            yield _task("shared", batch, layer, half, ("attention", layer))
            yield _task("experts", batch, layer, half, ("dispatch", layer))
            yield _task("combine", batch, layer, half, ("experts", layer))


def task_name(step: str, batch: str, layer: int) -> str:
    """Name of a step: ``A 1 dispatch``."""
    return f"{batch} {layer} {step}"


def _task(step: str, batch: str, layer: int, times: MoeTimes, after: tuple[str, int] | None) -> Task:
    events = (task_name(after[0], batch, after[1]),) if after else ()
    return Task(task_name(step, batch, layer), dict(STEPS)[step], getattr(times, step), events)

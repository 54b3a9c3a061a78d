"""Many ranks pull from one source: its copy engine serves one request at a time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from random import Random
from statistics import fmean, stdev

from tracer.errors import finite_number, one_of, whole_number

ORDERS = ("same", "rotated")
SLICE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """How much longer a pull takes than alone: mean over ranks and trials, and its standard error."""

    mean: float
    error: float


def pull_seconds(
    ranks: int,
    source_seconds: float,
    starts: tuple[float, ...],
    *,
    order: str = "same",
    slices: int = 1,
) -> tuple[float, ...]:
    """Seconds each rank takes to pull from every other one, ``source_seconds`` each when nobody else pulls.

    A rank has one request under way; a source serves requests in order of arrival. ``order``: all ranks go
    through the sources alike, or each starts after itself. A pull of several ``slices`` goes round the
    sources slice by slice.

    Raises:
        ConfigError: for counts below 1 or a time that is not above 0.
    """
    whole_number("pull.ranks", ranks, at_least=2)
    one_of("pull.order", order, ORDERS)
    each = finite_number("pull.source_seconds", source_seconds, unit="seconds") / whole_number(
        "pull.slices", slices
    )
    queues = {rank: _sources(rank, ranks, order) * slices for rank in range(ranks)}
    free = [0.0] * ranks
    done = list(starts)
    waiting = [(start, rank, 0) for rank, start in enumerate(starts)]
    heapq.heapify(waiting)
    while waiting:
        now, rank, turn = heapq.heappop(waiting)
        if turn == len(queues[rank]):
            done[rank] = now
            continue
        source = queues[rank][turn]
        free[source] = max(now, free[source]) + each
        heapq.heappush(waiting, (free[source], rank, turn + 1))
    return tuple(end - start for end, start in zip(done, starts, strict=True))


def _sources(rank: int, ranks: int, order: str) -> list[int]:
    if order == "rotated":
        return [(rank + step) % ranks for step in range(1, ranks)]
    return [source for source in range(ranks) if source != rank]


def stretch(
    ranks: int,
    source_bytes: float,
    bytes_per_s: float,
    *,
    spread_seconds: float,
    order: str = "same",
    slice_bytes: float | None = None,
    trials: int = 400,
    seed: int = 0,
) -> Stretch:
    """Mean stretch of pulls that start at random within ``spread_seconds``, simulated.

    ``slice_bytes=None`` pulls each source's experts in one piece.

    Raises:
        ConfigError: as :func:`pull_seconds`.
    """
    whole_number("pull.trials", trials, at_least=2)
    source_seconds = finite_number("pull.source_bytes", source_bytes) / bytes_per_s
    slices = (
        1
        if slice_bytes is None
        else max(1, round(source_bytes / finite_number("pull.slice_bytes", slice_bytes)))
    )
    alone = source_seconds * (ranks - 1)
    draw = Random(seed)
    means = []
    for _ in range(trials):
        starts = tuple(draw.uniform(0, spread_seconds) for _ in range(ranks))
        taken = pull_seconds(ranks, source_seconds, starts, order=order, slices=slices)
        means.append(fmean(taken) / alone)
    return Stretch(fmean(means), stdev(means) / trials**0.5)

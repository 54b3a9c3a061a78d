"""When each part of an animated picture shows: the hops laid over one clock that starts again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layouts.scene.scene import HopScene

TRAVEL_S, REST_S = 0.6, 0.6
FIRST_S, END_S = 1.4, 4.0
CLOCK = "c"

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Beat:
    """One hop's time, in seconds from the start: it travels, arrives, and rests until the next one."""

    start: float
    arrive: float
    end: float


@dataclass(frozen=True, slots=True)
class Clockwork:
    """A beat for each hop that plays; after the last one the whole trip is shown until ``total``."""

    beats: tuple[Beat, ...]
    total: float

    @classmethod
    def of(cls, hops: Sequence[HopScene]) -> Clockwork:
        """Beats of hops played one after another; a hop that moves nothing only rests."""
        beats: list[Beat] = []
        now = 0.0
        for hop in hops:
            rest = REST_S if beats else FIRST_S
            arrive = now + (TRAVEL_S if hop.moves else 0.0)
            beats.append(Beat(now, arrive, arrive + rest))
            now = arrive + rest
        return cls(tuple(beats), now + END_S)

    @property
    def played(self) -> float:
        """When the last hop's rest is over."""
        return self.beats[-1].end

    def element(self) -> str:
        """The clock itself: an animation of nothing that begins anew when it ends."""
        return (
            f'<rect width="0" height="0"><animate id="{CLOCK}" attributeName="x" from="0" to="0" '
            f'dur="{seconds(self.total)}" begin="0;{CLOCK}.end"/></rect>'
        )


def seconds(value: float) -> str:
    """Seconds as SMIL writes them: a bare number.

    >>> seconds(1.2000000001), seconds(3.0)
    ('1.2', '3')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def during(spans: Iterable[Span], value: str = "inline", name: str = "display") -> str:
    """Children that set an attribute of their element in each span: by default, they show it.

    >>> during([(0.0, 1.5), (4.0, 5.5)])
    '<set attributeName="display" to="inline" begin="c.begin+0;c.begin+4" dur="1.5"/>'
    """
    starts: dict[str, list[float]] = {}
    for start, end in joined(spans):
        starts.setdefault(seconds(end - start), []).append(start)
    return "".join(
        f'<set attributeName="{name}" to="{value}" begin="{begins(times)}" dur="{duration}"/>'
        for duration, times in starts.items()
    )


def begins(times: Iterable[float]) -> str:
    """Times on the clock, as a list of begins."""
    return ";".join(f"{CLOCK}.begin+{seconds(time)}" for time in times)


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order; those that touch are joined.

    >>> list(joined([(2.0, 3.0), (0.0, 1.0), (1.0, 2.0), (5.0, 6.0)]))
    [(0.0, 3.0), (5.0, 6.0)]
    """
    current: Span | None = None
    for start, end in sorted(spans):
        if current is not None and start <= current[1] + 1e-9:
            current = (current[0], max(current[1], end))
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current

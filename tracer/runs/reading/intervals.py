"""Stretches of time in ascending order, none touching the next; millions of them in 16 bytes each."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Intervals:
    """Starts and ends in nanoseconds; those that touch or overlap are one.

    >>> busy = Intervals.joined([(5, 7), (0, 2), (2, 3), (6, 9)])
    >>> list(busy.pairs()), busy.length(1, 6), busy.shared(Intervals.joined([(1, 6)]), 0, 9)
    ([(0, 3), (5, 9)], 3, 3)
    """

    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def joined(cls, pairs: Iterable[tuple[int, int]]) -> Intervals:
        """Intervals in any order."""
        found = cls()
        for start, end in pairs:
            found.add(start, end)
        return found.sorted()

    def add(self, start: int, end: int) -> None:
        """Add one, joined with the last where it follows on it; :meth:`sorted` puts the others right."""
        if self.ends and self.starts[-1] <= start <= self.ends[-1]:
            self.ends[-1] = max(self.ends[-1], end)
        else:
            self.starts.append(start)
            self.ends.append(end)

    def sorted(self) -> Intervals:
        """The same in ascending order."""
        starts, ends, found = self.starts, self.ends, Intervals()
        if all(starts[i] <= starts[i + 1] for i in range(len(starts) - 1)):
            for start, end in zip(starts, ends, strict=True):
                found.add(start, end)
            return found
        for place in sorted(range(len(starts)), key=starts.__getitem__):
            found.add(starts[place], ends[place])
        return found

    def pairs(self) -> Iterable[tuple[int, int]]:
        """Start and end of each."""
        return zip(self.starts, self.ends, strict=True)

    def length(self, start: int, end: int) -> int:
        """Nanoseconds of these between two times."""
        return sum(max(0, min(b, end) - max(a, start)) for a, b in self._between(start, end))

    def shared(self, other: Intervals, start: int, end: int) -> int:
        """Nanoseconds between two times that are in both."""
        return sum(other.length(max(a, start), min(b, end)) for a, b in self._between(start, end))

    def _between(self, start: int, end: int) -> Iterable[tuple[int, int]]:
        first, last = bisect_left(self.ends, start), bisect_right(self.starts, end)
        return ((self.starts[place], self.ends[place]) for place in range(first, last))

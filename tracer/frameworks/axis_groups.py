"""Groups as walks over a grid of named axes, and two views of our axes made of a framework's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracer.mesh.grid import RankGrid, check_listable


@dataclass(frozen=True, slots=True)
class AxisGroups:
    """Groups of a grid: members differ along ``axes``, the first moving fastest.

    ``ends`` keeps only these members (Megatron's embedding group is the first and the last of a
    pipeline). No axes, or axes of size 1: every rank alone.

    >>> grid = RankGrid(("tp", "pcp"), (2, 2))
    >>> AxisGroups(grid, ("pcp", "tp")).listed()
    [[0, 2, 1, 3]]
    """

    grid: RankGrid
    axes: tuple[str, ...]
    ends: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Members of a group, before ``ends``."""
        size = 1
        for name in self.axes:
            size *= self.grid.size_of(name)
        return size

    def walked(self) -> list[list[int]]:
        """Every group, its members in walking order, ``ends`` or not.

        Raises:
            ConfigError: above ``MAX_LISTED_RANKS`` ranks.
        """
        check_listable(self.grid.size)
        kept = [name for name in self.grid.names if name not in self.axes]
        offsets = self._offsets(self.axes)
        return [[base + offset for offset in offsets] for base in self._offsets(kept)]

    def _offsets(self, names: Sequence[str]) -> list[int]:
        """Ranks that differ from rank 0 along these axes alone, the first axis moving fastest."""
        found = [0]
        for name in names:
            size, stride = self.grid.size_of(name), self.grid.strides[self.grid.index(name)]
            found = [base + step * stride for step in range(size) for base in found]
        return found

    def listed(self) -> list[list[int]]:
        """Every group as a list of ranks.

        Raises:
            ConfigError: as :meth:`walked`.
        """
        groups = self.walked()
        if not self.ends:
            return groups
        return [list(dict.fromkeys(group[end] for end in self.ends)) for group in groups]

    def first(self, limit: int = 16) -> list[int]:
        """The first members of rank 0's group; never lists more than ``limit``."""
        group = self.grid.group(0, self.axes)
        return list(group[: min(limit, len(group))])


@dataclass(frozen=True, slots=True)
class View:
    """A grid of a framework's axes, and which of them make up each of ours (fastest first)."""

    grid: RankGrid
    parts: Mapping[str, tuple[str, ...]]

    def walk(self, axis: str) -> AxisGroups:
        """The groups of one of our axes."""
        return AxisGroups(self.grid, self.parts[axis])

    def size(self, axis: str) -> int:
        """Ranks along one of our axes."""
        return self.walk(axis).size

    def order(self, axes: tuple[str, ...]) -> str:
        """Our axes as an order string, fastest first, by the place of their first part larger than 1."""
        return "-".join(sorted(axes, key=lambda axis: self._place(axis, axes)))

    def _place(self, axis: str, axes: tuple[str, ...]) -> tuple[int, int]:
        places = [self.grid.index(name) for name in self.parts[axis]]
        large = [place for place in places if self.grid.sizes[place] > 1]
        return (min(large or places or [len(self.grid.names)]), axes.index(axis))


def grid(**sizes: int) -> RankGrid:
    """A grid from sizes, fastest axis first.

    >>> grid(tp=2, pp=4).stride_of("pp")
    2
    """
    return RankGrid(tuple(sizes), tuple(sizes.values()))

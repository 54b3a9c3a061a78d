"""Ranks laid out over named axes: strides, coordinates and groups.

``rank = Σ coordinate(axis) · stride(axis)``; strides are prefix products of the order, fastest axis
first (Megatron's RankGenerator, ``megatron/core/parallel_state.py``). Nothing here knows what an axis
means, so the same grid serves dense axes, expert axes and any framework's own names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, overload

from tracer.errors import ConfigError, nearest, whole_number

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    IntArray = NDArray[np.integer[Any]]

MAX_RANKS = 1 << 60
MAX_LISTED_RANKS = 1 << 20
"""Listing every group of more ranks than this is refused; one rank's own groups never are."""


def check_listable(ranks: int, most: int = MAX_LISTED_RANKS) -> None:
    """Refuse to list all groups of a mesh that is too large to write down.

    Raises:
        ConfigError: above ``most`` ranks.
    """
    if ranks > most:
        raise ConfigError(
            "world_size",
            ranks,
            f"is more than the {most:,} ranks whose groups can all be listed",
            "ask for one rank's groups instead: Mesh.group(rank, axis), or tokentrip rank SCENARIO RANK",
        )


@dataclass(frozen=True, slots=True)
class RankGroup(Sequence[int]):
    """Members of one group, ascending, computed on demand: a group of 10^9 ranks costs nothing.

    ``base`` is the smallest member, ``steps`` the (size, stride) of each axis that varies, fastest
    first.
    """

    base: int
    steps: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return prod(size for size, _ in self.steps)

    def _member(self, index: int) -> int:
        rank = self.base
        for size, stride in self.steps:
            index, coordinate = divmod(index, size)
            rank += coordinate * stride
        return rank

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice) -> int | tuple[int, ...]:
        if isinstance(index, slice):
            return tuple(self._member(i) for i in range(*index.indices(len(self))))
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"group index {index} out of range for {length} members")
        return self._member(index % length)

    def __iter__(self) -> Iterator[int]:
        if not self.steps:
            yield self.base
            return
        (size, stride), *outer = self.steps
        for base in RankGroup(self.base, tuple(outer)):
            yield from range(base, base + size * stride, stride)

    def __contains__(self, rank: object) -> bool:
        if not isinstance(rank, int):
            return False
        offset = rank - self.base
        for size, stride in reversed(self.steps):
            coordinate = offset // stride
            if not 0 <= coordinate < size:
                return False
            offset -= coordinate * stride
        return offset == 0


@dataclass(frozen=True, slots=True)
class RankGrid:
    """Named axes, fastest first, with their sizes.

    >>> grid = RankGrid(("tp", "cp", "dp", "pp"), (2, 2, 4, 2))
    >>> grid.coordinates(11)
    {'tp': 1, 'cp': 1, 'dp': 2, 'pp': 0}
    >>> list(grid.group(11, "dp"))
    [3, 7, 11, 15]

    Raises:
        ConfigError: for a repeated axis, or a size that is not a whole number of at least 1, or more
            than ``MAX_RANKS`` ranks.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...] = field(init=False, repr=False, compare=False)
    size: int = field(init=False, compare=False)
    _size_by_name: dict[str, int] = field(init=False, repr=False, compare=False)
    _stride_by_name: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.names) != len(self.sizes):
            raise ConfigError(
                "sizes", self.sizes, f"must give one size for each of {self.names}", "add or drop one"
            )
        strides, stride = [], 1
        for name, size in zip(self.names, self.sizes, strict=True):
            if self.names.count(name) > 1:
                raise ConfigError(
                    "order", "-".join(self.names), f"names axis {name!r} more than once", "name it once"
                )
            whole_number(name, size)
            strides.append(stride)
            stride *= size
            if stride > MAX_RANKS:
                rule = f"makes more than the {MAX_RANKS:,} ranks that can be counted"
                raise ConfigError(name, size, rule, "take a smaller one")
        object.__setattr__(self, "strides", tuple(strides))
        object.__setattr__(self, "size", stride)
        object.__setattr__(self, "_size_by_name", dict(zip(self.names, self.sizes, strict=True)))
        object.__setattr__(self, "_stride_by_name", dict(zip(self.names, strides, strict=True)))

    def index(self, name: str) -> int:
        """Place of an axis in the order.

        Raises:
            ConfigError: for an axis the grid does not have.
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise ConfigError(
                "axis", str(name), "is not an axis here", nearest(name, list(self.names))
            ) from None

    def size_of(self, name: str) -> int:
        """Number of ranks along an axis."""
        return self._size_by_name[name] if name in self._size_by_name else self.sizes[self.index(name)]

    def stride_of(self, name: str) -> int:
        """Distance between neighbours along an axis."""
        return self._stride_by_name[name] if name in self._stride_by_name else self.strides[self.index(name)]

    def check_rank(self, rank: object) -> int:
        """The rank, when it is one.

        Raises:
            ConfigError: for anything but an int in ``0 .. size-1``.
        """
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < self.size:
            raise ConfigError(
                "rank", rank, f"must be a whole number from 0 to {self.size - 1}", "pick one of those"
            )
        return rank

    def coordinate(self, rank: int, name: str) -> int:
        """Coordinate of one rank along one axis; the rank is not checked."""
        return rank // self.stride_of(name) % self.size_of(name)

    def coordinates(self, rank: int) -> dict[str, int]:
        """Coordinates of one rank, in the grid's order."""
        self.check_rank(rank)
        return {
            name: rank // stride % size
            for name, size, stride in zip(self.names, self.sizes, self.strides, strict=True)
        }

    def coordinates_of(self, ranks: IntArray) -> dict[str, IntArray]:
        """Coordinates of an array of ranks, any shape; one array of that shape an axis.

        Raises:
            ConfigError: when a rank is outside the grid.
        """
        if ranks.size and not (int(ranks.min()) >= 0 and int(ranks.max()) < self.size):
            raise ConfigError("ranks", ranks, f"must lie in 0 to {self.size - 1}", "drop the others")
        return {
            name: ranks // stride % size
            for name, size, stride in zip(self.names, self.sizes, self.strides, strict=True)
        }

    def rank(self, coordinates: Mapping[str, int]) -> int:
        """Rank of a full set of coordinates.

        Raises:
            ConfigError: for a missing, unknown or out-of-range coordinate.
        """
        for name in coordinates:
            self.index(name)
        rank = 0
        for name, size, stride in zip(self.names, self.sizes, self.strides, strict=True):
            value = coordinates.get(name, 0 if size == 1 else None)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < size:
                raise ConfigError(
                    name, value, f"must be a coordinate from 0 to {size - 1}", "give one of those"
                )
            rank += value * stride
        return rank

    def ranks_of(self, coordinates: Mapping[str, IntArray]) -> IntArray | int:
        """Ranks of arrays of coordinates (broadcast together); an axis of size 1 may be left out."""
        total: IntArray | int = 0
        for name, values in coordinates.items():
            size = self.size_of(name)
            if values.size and not (int(values.min()) >= 0 and int(values.max()) < size):
                raise ConfigError(
                    name, values, f"must hold coordinates from 0 to {size - 1}", "drop the others"
                )
            total = total + values * self.stride_of(name)
        return total

    def _places(self, axes: str | Iterable[str]) -> list[int]:
        names = (axes,) if isinstance(axes, str) else tuple(axes)
        return sorted({self.index(name) for name in names})

    def group(self, rank: int, axes: str | Iterable[str]) -> RankGroup:
        """The ranks that share every coordinate with ``rank`` but those of ``axes``, ascending."""
        self.check_rank(rank)
        places = self._places(axes)
        base = rank - sum(rank // self.strides[i] % self.sizes[i] * self.strides[i] for i in places)
        return RankGroup(base, tuple((self.sizes[i], self.strides[i]) for i in places if self.sizes[i] > 1))

    def each_group(self, axes: str | Iterable[str]) -> Iterator[RankGroup]:
        """Every group along ``axes``, one after the other, smallest members ascending; nothing is listed."""
        places = self._places(axes)
        steps = tuple((self.sizes[i], self.strides[i]) for i in places if self.sizes[i] > 1)
        kept = [i for i in range(len(self.names)) if i not in places]
        bases = RankGroup(0, tuple((self.sizes[i], self.strides[i]) for i in kept if self.sizes[i] > 1))
        return (RankGroup(base, steps) for base in bases)

    def groups(self, axes: str | Iterable[str]) -> IntArray:
        """Every group, as an array ``[groups, members]`` of ranks; rows and members ascend.

        Raises:
            ConfigError: above ``MAX_LISTED_RANKS`` ranks.
        """
        import numpy as np

        check_listable(self.size)
        places = self._places(axes)
        kept = [place for place in range(len(self.names)) if place not in places]
        ranks = np.zeros(1, dtype=np.int32)
        for place in (*places, *kept):
            steps = np.arange(self.sizes[place], dtype=np.int32) * self.strides[place]
            ranks = np.add.outer(steps, ranks).reshape(-1)
        return ranks.reshape(-1, prod(self.sizes[place] for place in places))

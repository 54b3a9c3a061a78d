"""A set of picks: ``[layers, tokens, k]`` experts, read in blocks so that any length fits in memory.

Picks come from an array, from a file, or from a file that was sent and is held in memory under its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picks = NDArray[np.integer[Any]]


class PickSource(Protocol):
    """Picks of several layers; -1 is no pick."""

    @property
    def layers(self) -> int:
        """Layers in the set."""

    @property
    def tokens(self) -> int:
        """Tokens in each layer."""

    @property
    def top_k(self) -> int:
        """Picks a token."""

    def read(self, layer: int, start: int, stop: int) -> Picks:
        """Picks of tokens ``start`` to ``stop`` of a layer (counted from 0), ``[n, k]``, C order."""


@dataclass(frozen=True, slots=True)
class ArrayPicks:
    """Picks in memory: ``[layers, tokens, k]`` integers (``[tokens, k]`` is one layer).

    Raises:
        ConfigError: for another shape, or an array that does not hold integers.
    """

    array: Picks

    def __post_init__(self) -> None:
        array = self.array
        if not np.issubdtype(array.dtype, np.integer):
            got = str(array.dtype)
            raise ConfigError("picks", got, "must be integers", "convert the ids to int16 or int32")
        if array.ndim == 2:
            object.__setattr__(self, "array", array[None])
        elif array.ndim != 3:
            raise ConfigError(
                "picks", list(array.shape), "must be [layers, tokens, k]", "add or drop an axis"
            )

    @property
    def layers(self) -> int:
        """Layers in the set."""
        return int(self.array.shape[0])

    @property
    def tokens(self) -> int:
        """Tokens in each layer."""
        return int(self.array.shape[1])

    @property
    def top_k(self) -> int:
        """Picks a token."""
        return int(self.array.shape[2])

    def read(self, layer: int, start: int, stop: int) -> Picks:
        """A view of the array, copied only when it is not in C order."""
        return np.ascontiguousarray(self.array[layer, start:stop])


@dataclass(frozen=True, slots=True)
class ChosenLayers:
    """Some layers of another source, in the order of ``chosen`` (counted from 0)."""

    source: PickSource
    chosen: tuple[int, ...]

    @property
    def layers(self) -> int:
        """Layers chosen."""
        return len(self.chosen)

    @property
    def tokens(self) -> int:
        """Tokens in each layer."""
        return self.source.tokens

    @property
    def top_k(self) -> int:
        """Picks a token."""
        return self.source.top_k

    def read(self, layer: int, start: int, stop: int) -> Picks:
        """As the source's, of the chosen layer."""
        return self.source.read(self.chosen[layer], start, stop)


@dataclass(frozen=True, slots=True)
class WithShared:
    """Another source's picks, with experts that every token picks besides (shared ones that are routed).

    A token without any pick (all -1) does not pick them either.
    """

    source: PickSource
    shared: tuple[int, ...]

    @property
    def layers(self) -> int:
        """Layers in the set."""
        return self.source.layers

    @property
    def tokens(self) -> int:
        """Tokens in each layer."""
        return self.source.tokens

    @property
    def top_k(self) -> int:
        """Picks a token, the shared experts among them."""
        return self.source.top_k + len(self.shared)

    def read(self, layer: int, start: int, stop: int) -> Picks:
        """The source's columns, then one for each shared expert ``[n, top_k]``."""
        picks = self.source.read(layer, start, stop)
        wide = np.empty((len(picks), self.top_k), picks.dtype)
        wide[:, : self.source.top_k] = picks
        routed = picks.max(axis=1, initial=-1) >= 0
        for column, expert in enumerate(self.shared, self.source.top_k):
            wide[:, column] = np.where(routed, expert, -1)
        return wide


@dataclass(frozen=True, slots=True)
class InMemory:
    """Bytes under the name of the file they came from; ``name`` decides how they are read."""

    name: str
    data: bytes = field(repr=False)

    @property
    def suffix(self) -> str:
        """Ending of the name, in small letters."""
        return PurePosixPath(self.name.lower()).suffix

    def open(self, mode: Literal["rb"] = "rb") -> BytesIO:
        """The bytes as a file."""
        return BytesIO(self.data)

    def __str__(self) -> str:
        return self.name


Readable = Path | InMemory
"""What the readers of picks take."""

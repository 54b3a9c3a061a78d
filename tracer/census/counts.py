"""What the kernel counts, in integers that add up to the same bit in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.census.layout import CensusLayout

    Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the layers that share a stage and a placement, by source rank (place in the stage).

    ``gpus``: ``[sources, words * 64]`` tokens with an expert on the GPU of each bit; ``islands``:
    ``[sources, lanes]`` tokens with an expert on each island; ``hist``: ``[sources, slots]`` picks that
    each slot of the placement serves, in column 0 those of -1; ``tokens``: ``[sources]`` rows of picks
    seen; ``blank``: ``[sources]`` those of -1 alone. All int64.
    """

    gpus: Int64s
    islands: Int64s
    hist: Int64s
    tokens: Int64s
    blank: Int64s

    @classmethod
    def zeros(cls, layout: CensusLayout, slots: int) -> Counts:
        """Nothing counted yet; ``slots`` are those of the placement, and one for no pick."""
        sources = layout.sources
        return cls(
            np.zeros((sources, layout.words * 64), np.int64),
            np.zeros((sources, layout.lanes), np.int64),
            np.zeros((sources, slots), np.int64),
            np.zeros(sources, np.int64),
            np.zeros(sources, np.int64),
        )

    def missing_picks(self) -> int:
        """Picks that were -1."""
        return int(self.hist[:, 0].sum())

    def add(self, other: Counts) -> None:
        """Add another's counts to this one's arrays."""
        for name in self.__slots__:
            total: Int64s = getattr(self, name)
            total += getattr(other, name)

"""What the kernel counts, in integers that add up to the same bit in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.census.layout import CensusLayout, ExpertTargets, GroupPlaces

    Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StageTraffic:
    """What one stage moves in the layers counted; ranks are places in the stage's ascending list.

    ``copies [home, gpu]``: tokens with an expert on the GPU, the home's own included. ``picks [home,
    gpu]``: picks, one for each etp rank. ``sent [src, dst]``: messages out, through relays; ``back``:
    messages of combine. ``ib_copies [home, nvlink_domain]``: messages that leave a home for another
    NVLink domain. ``relayed [gpu]``: messages it forwards for others. ``load [expert]``, ``gpu_load
    [gpu]``: picks. ``straight``: messages that went straight for want of a relay. ``pulled [owner,
    puller]``: bytes of weights. ``rows [home]``: rows with picks; one of -1 alone (padding, or a cached
    position) is none. All int64.
    """

    copies: Int64s
    picks: Int64s
    sent: Int64s
    back: Int64s
    ib_copies: Int64s
    relayed: Int64s
    load: Int64s
    gpu_load: Int64s
    pulled: Int64s
    rows: Int64s
    straight: int = 0


def picks_by_expert(targets: ExpertTargets, counts: Counts) -> Int64s:
    """Picks ``[sources, experts]``, those of an expert's replicas summed."""
    found: Int64s = np.add.reduceat(counts.hist, targets.first[1:], axis=1)
    return found


def picks_by_member(group: GroupPlaces, targets: ExpertTargets, hist: Int64s) -> Int64s:
    """Picks ``[homes, members]``: each expert's, at every etp rank of the EP rank that serves it."""
    by_ep = np.zeros((len(group.ranks), int(group.ep_ranks.max()) + 1), np.int64)
    for home, position in enumerate(group.positions.tolist()):
        served = targets.ep_ranks[targets.variant_of[position]]
        np.add.at(by_ep[home], served[1:], hist[position, 1:])
    return by_ep[:, group.ep_ranks]


def add_ib(group: GroupPlaces, sent: Int64s, ib_copies: Int64s) -> None:
    """Add a group's messages between NVLink domains, ``sent [homes, members]``, to ``ib_copies``."""
    outside = group.nvlink_domains[:, None] != group.nvlink_domains[None, :]
    for member, nvlink_domain in enumerate(group.nvlink_domains.tolist()):
        ib_copies[group.positions, nvlink_domain] += np.where(outside[:, member], sent[:, member], 0)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the layers that share a stage and a placement, by source rank (place in the stage).

    ``gpus``: ``[sources, words * 64]`` tokens with an expert on the GPU of each bit; ``nvlink_domains``:
    ``[sources, lanes]`` tokens with an expert on each NVLink domain; ``hist``: ``[sources, slots]`` picks
    that each slot of the placement serves, in column 0 those of -1; ``tokens``: ``[sources]`` rows of
    picks seen; ``blank``: ``[sources]`` those of -1 alone. All int64.
    """

    gpus: Int64s
    nvlink_domains: Int64s
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

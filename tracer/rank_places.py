"""Where arrays of ranks sit: islands and indices, and the share of a group's messages that leave one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.cluster import Cluster
    from tracer.rank_grid import IntArray

    Int64s = NDArray[np.int64]


def islands_of(cluster: Cluster, ranks: IntArray) -> Int64s:
    """NVLink island of each rank, in the shape of ``ranks``."""
    wide: Int64s = ranks.astype(np.int64)
    if cluster.placement is None:
        found: Int64s = wide // cluster.gpus_per_island
        return found
    nodes = np.array([node for node, _ in cluster.placement], np.int64)
    found = nodes[wide] // cluster.nodes_per_island
    return found


def indices_of(cluster: Cluster, ranks: IntArray) -> Int64s:
    """Place of each rank within its island, in the shape of ``ranks``."""
    wide: Int64s = ranks.astype(np.int64)
    if cluster.placement is None:
        found: Int64s = wide % cluster.gpus_per_island
        return found
    table: Int64s = np.array(cluster.placement, np.int64)
    nodes: Int64s = table[wide, 0]
    local: Int64s = table[wide, 1]
    return nodes % cluster.nodes_per_island * cluster.gpus_per_node + local


def pair_crossing_share(islands: Int64s) -> float:
    """Share of ordered pairs of different members that sit on different islands.

    ``islands``: ``[groups, members]``, island of each member. 0 for groups of one.
    """
    groups, members = islands.shape
    if members == 1:
        return 0.0
    keys = islands + np.arange(groups, dtype=np.int64)[:, None] * (int(islands.max(initial=0)) + 1)
    _, counts = np.unique(keys, return_counts=True)
    together = int((counts.astype(np.int64) * (counts - 1)).sum())
    return float(1.0 - together / (groups * members * (members - 1)))


def ring_crossing_share(islands: Int64s) -> float:
    """Share of links i -> i+1 (mod members) whose ends sit on different islands; ``[groups, members]``."""
    if islands.shape[1] == 1:
        return 0.0
    return float(np.mean(islands != np.roll(islands, -1, axis=1)))

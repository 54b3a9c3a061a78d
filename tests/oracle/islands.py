"""Where each rank sits: node, island, place within the island, and the tier of a link."""

from __future__ import annotations

from typing import Any


class OracleCluster:
    """Island and index of every rank of one scenario."""

    def __init__(self, scenario: dict[str, Any], world: int) -> None:
        cluster = scenario.get("cluster", {})
        per_node = cluster.get("gpus_per_node", 8)
        per_island = cluster.get("nodes_per_island", 1)
        table = cluster.get("placement")
        self.island: list[int] = []
        self.index: list[int] = []
        for rank in range(world):
            node, local = table[rank] if table else (rank // per_node, rank % per_node)
            self.island.append(node // per_island)
            self.index.append((node % per_island) * per_node + local)

    def tier(self, src: int, dst: int) -> str:
        """`nvlink` inside an island, `ib` between two."""
        return "nvlink" if self.island[src] == self.island[dst] else "ib"

    def rank_at(self, island: int, index: int) -> int | None:
        """The rank at a place of an island, None when nobody sits there."""
        for rank in range(len(self.island)):
            if self.island[rank] == island and self.index[rank] == index:
                return rank
        return None

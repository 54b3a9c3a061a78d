"""Where each rank sits: node, island, place within the island, and the tier of a link."""

from __future__ import annotations

from typing import Any


class OracleCluster:
    """Island and index of every rank of one scenario."""

    def __init__(self, scenario: dict[str, Any], world: int) -> None:
        cluster = scenario.get("cluster", {})
        per_node = cluster.get("gpus_per_node", 8)
        per_nvlink_domain = cluster.get("nodes_per_island", 1)
        table = cluster.get("placement")
        self.nvlink_domain: list[int] = []
        self.index: list[int] = []
        for rank in range(world):
            node, local = table[rank] if table else (rank // per_node, rank % per_node)
            self.nvlink_domain.append(node // per_nvlink_domain)
            self.index.append((node % per_nvlink_domain) * per_node + local)

    def tier(self, src: int, dst: int) -> str:
        """`nvlink` inside an island, `ib` between two."""
        return "nvlink" if self.nvlink_domain[src] == self.nvlink_domain[dst] else "ib"

    def rank_at(self, nvlink_domain: int, index: int) -> int | None:
        """The rank at a place of an island, None when nobody sits there."""
        for rank in range(len(self.nvlink_domain)):
            if self.nvlink_domain[rank] == nvlink_domain and self.index[rank] == index:
                return rank
        return None

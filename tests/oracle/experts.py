"""Which EP rank holds which expert, and which replica of it serves this token."""

from __future__ import annotations

from typing import Any

from oracle.nvlink_domains import OracleCluster
from oracle.ranks import OracleMesh


def shared_ids(scenario: dict[str, Any]) -> list[int]:
    """Numbers of the shared experts where they are served as routed ones: after the routed experts."""
    if not scenario.get("mesh", {}).get("shared_routed", False):
        return []
    first = scenario["model"]["experts"]
    return list(range(first, first + scenario["model"]["shared_experts"]))


def slots(scenario: dict[str, Any], layer: int, ep: int) -> list[tuple[int, int]]:
    """(expert, EP rank) of every slot, in slot order."""
    placement = scenario.get("placement", {})
    experts = scenario["model"]["experts"] + len(shared_ids(scenario))
    kind = placement.get("kind", "linear")
    if kind == "table":
        by_layer = placement.get("slots_by_layer") or {}
        listed = by_layer.get(str(layer)) or placement["slots"]
        per_rank = len(listed) // ep
        return [(expert, place // per_rank) for place, expert in enumerate(listed)]
    if kind == "round_robin":
        return [(expert, expert % ep) for expert in range(experts)]
    left_over = experts % ep
    held = []
    expert = 0
    for ep_rank in range(ep):
        for _ in range(experts // ep + (1 if ep_rank < left_over else 0)):
            held.append((expert, ep_rank))
            expert += 1
    return held


class ExpertMap:
    """Answers, for one layer, where a sender finds an expert."""

    def __init__(
        self, scenario: dict[str, Any], layer: int, mesh: OracleMesh, cluster: OracleCluster, position: int
    ) -> None:
        self.mesh, self.cluster, self.position = mesh, cluster, position
        self.slots = slots(scenario, layer, mesh.sizes["ep"])
        self._found: dict[tuple[int, int], list[int]] = {}

    def ranks_of(self, ep_rank: int, sender: int) -> list[int]:
        """The etp ranks of an EP rank, inside the sender's dispatch group."""
        if (ep_rank, sender) not in self._found:
            group = self.mesh.group(sender, "dispatch")
            found = [rank for rank in group if self.mesh.coordinates[rank]["ep"] == ep_rank]
            self._found[ep_rank, sender] = found
        return self._found[ep_rank, sender]

    def serving(self, expert: int, sender: int) -> int:
        """The EP rank whose copy serves: own rank, else own island, else any; ties by position."""
        holders = [ep_rank for held, ep_rank in self.slots if held == expert]
        own = [ep_rank for ep_rank in holders if ep_rank == self.mesh.coordinates[sender]["ep"]]
        near = [ep_rank for ep_rank in holders if self._is_near(ep_rank, sender)]
        ties = own or near or holders
        return ties[self.position % len(ties)]

    def _is_near(self, ep_rank: int, sender: int) -> bool:
        """An EP rank is on the sender's island when one of its etp ranks is."""
        nvlink_domain = self.cluster.nvlink_domain[sender]
        return any(
            self.cluster.nvlink_domain[rank] == nvlink_domain for rank in self.ranks_of(ep_rank, sender)
        )

    def gpus(self, expert: int, sender: int) -> list[int]:
        """The GPUs (one for each etp) that compute this expert for this sender."""
        return self.ranks_of(self.serving(expert, sender), sender)

"""Which coordinates a rank has, and which ranks share them: by counting, not by strides."""

from __future__ import annotations

from typing import Any

DENSE = ("tp", "cp", "dp", "pp")
EXPERT = ("etp", "ep", "edp")
AXES = DENSE + EXPERT

#: What the ranks of one group have in common.
SHARED = {
    "tp": ("cp", "dp", "pp"),
    "cp": ("tp", "dp", "pp"),
    "dp": ("tp", "cp", "pp"),
    "pp": ("tp", "cp", "dp"),
    "etp": ("pp", "ep", "edp"),
    "ep": ("pp", "etp", "edp"),
    "edp": ("pp", "etp", "ep"),
    "replica": ("pp", "dp"),
    "dispatch": ("pp", "edp"),
    "stage": ("pp",),
}
GROUP_NAMES = ("tp", "cp", "dp", "pp", "etp", "ep", "edp", "replica")


def count_up(order: list[str], sizes: dict[str, int]) -> list[dict[str, int]]:
    """All coordinates in rank order: an odometer whose first wheel turns fastest."""
    total = 1
    for axis in order:
        total *= sizes[axis]
    wheels = dict.fromkeys(order, 0)
    readings = []
    for _ in range(total):
        readings.append(dict(wheels))
        for axis in order:
            wheels[axis] += 1
            if wheels[axis] < sizes[axis]:
                break
            wheels[axis] = 0
    return readings


class OracleMesh:
    """Both views of the ranks of one scenario."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        mesh = scenario.get("mesh", {})
        self.sizes = {axis: mesh.get(axis, 1) for axis in ("tp", "cp", "dp", "pp", "ep")}
        default_etp = self.sizes["tp"] if mesh.get("contract", "ep") == "tp" else 1
        self.sizes["etp"] = mesh.get("etp", default_etp)
        order = mesh.get("order", "tp-cp-dp-pp").split("-")
        order += [axis for axis in DENSE if axis not in order]  # of size 1, or the scenario is refused
        expert_order = mesh.get("expert_order", "etp-ep-edp").split("-")
        self.coordinates = count_up(order, self.sizes)
        self.world = len(self.coordinates)
        stage_size = self.world // self.sizes["pp"]
        self.sizes["edp"] = stage_size // (self.sizes["etp"] * self.sizes["ep"])
        readings = count_up(expert_order, self.sizes)
        assert len(readings) == stage_size, "etp * ep * edp must be the stage's size"
        for stage in range(self.sizes["pp"]):
            for place, rank in enumerate(self.stage_ranks(stage)):
                self.coordinates[rank].update(readings[place])
        self._found: dict[tuple[int, str], list[int]] = {}

    def stage_ranks(self, stage: int) -> list[int]:
        """The ranks of one pipeline stage, ascending."""
        return [rank for rank in range(self.world) if self.coordinates[rank]["pp"] == stage]

    def group(self, rank: int, name: str) -> list[int]:
        """The ranks that share with `rank` what the group `name` shares, ascending."""
        if (rank, name) not in self._found:
            members = list(range(self.world))
            for axis in SHARED[name]:
                mine = self.coordinates[rank][axis]
                members = [other for other in members if self.coordinates[other][axis] == mine]
            self._found[rank, name] = members
        return self._found[rank, name]

    def groups(self, name: str) -> list[list[int]]:
        """Every group `name`, by its lowest rank."""
        found: dict[tuple[int, ...], list[int]] = {}
        for rank in range(self.world):
            key = tuple(self.coordinates[rank][axis] for axis in SHARED[name])
            found.setdefault(key, []).append(rank)
        return list(found.values())

    def rank_with(self, like: int, **changed: int) -> int:
        """The rank with the dense coordinates of `like`, but for those given."""
        found = list(range(self.world))
        for axis in DENSE:
            wanted = changed.get(axis, self.coordinates[like][axis])
            found = [rank for rank in found if self.coordinates[rank][axis] == wanted]
        (rank,) = found
        return rank

    def line(self, rank: int, axis: str) -> list[int]:
        """The group of a dense axis, ordered by the coordinate on that axis."""
        return sorted(self.group(rank, axis), key=lambda member: self.coordinates[member][axis])

"""Sharded weights: which rank keeps which piece of a unit, and what a rank that runs the unit lacks."""

from __future__ import annotations

from typing import Any

from oracle.experts import shared_ids
from oracle.payloads import BYTES, DEFAULTS
from oracle.ranks import OracleMesh

Move = tuple[int, int, int, str]
GATHERED = ("zero3", "fsdp", "hsdp")


def gathers(scenario: dict[str, Any]) -> bool:
    """Whether weights lie in pieces."""
    return scenario.get("mesh", {}).get("weight_shard") in GATHERED


def keepers(scenario: dict[str, Any], mesh: OracleMesh, rank: int, experts: bool) -> list[int]:
    """Ranks that keep the pieces of a rank's weights: dealt out in runs to the copies of the shard group."""
    at = mesh.coordinates[rank]
    options = scenario.get("mesh", {})
    everyone = mesh.sizes["cp"] * mesh.sizes["dp"]
    copies = everyone // (options.get("weight_shard_size") or everyone)
    if experts and options.get("contract") != "tp":
        same = [r for r in mesh.stage_ranks(at["pp"]) if _alike(mesh, r, rank, ("etp", "ep"))]
        same.sort(key=lambda r: mesh.coordinates[r]["edp"])
    else:
        same = [r for r in mesh.stage_ranks(at["pp"]) if _alike(mesh, r, rank, ("tp",))]
        same.sort(key=lambda r: (mesh.coordinates[r]["dp"], mesh.coordinates[r]["cp"]))
    size = max(1, len(same) // copies)
    runs = [same[start : start + size] for start in range(0, len(same), size)]
    (mine,) = [run for run in runs if rank in run]
    return mine


def _alike(mesh: OracleMesh, one: int, two: int, axes: tuple[str, ...]) -> bool:
    return all(mesh.coordinates[one][axis] == mesh.coordinates[two][axis] for axis in axes)


def moves(scenario: dict[str, Any], mesh: OracleMesh, elements: dict[int, int], experts: bool) -> list[Move]:
    """Pieces on their way to the ranks that run a unit, of so many elements on each."""
    size = BYTES[scenario.get("dtype", {}).get("weights", DEFAULTS["weights"])]
    found = []
    for rank, count in elements.items():
        group = keepers(scenario, mesh, rank, experts)
        padded = count
        while padded % len(group):
            padded += 1
        found += [(peer, rank, padded // len(group) * size, "weights") for peer in group if peer != rank]
    return found


def unit_elements(weights: Any, rank: int, kind: str, layer: int) -> int:
    """Elements of a unit on a rank, from the units that the rank is said to hold."""
    if kind in ("embedding", "head"):
        return _end_elements(weights.scenario, weights.mesh, kind)
    routed_too = set(shared_ids(weights.scenario))
    total = 0
    for unit, count in weights.units[rank].items():
        part, _, which = unit
        in_slot = part == "experts" or (part == "shared" and bool(routed_too))
        if part in ("embedding", "lm_head") or which == ("final",):
            continue
        if which[0] == layer and kind == ("experts" if in_slot else "layer"):
            total += count * weights.size[unit]
    return total


def _end_elements(scenario: dict[str, Any], mesh: OracleMesh, kind: str) -> int:
    """Rows of the vocabulary, padded to tp where they are cut; with the head goes the last norm."""
    hidden, rows = scenario["model"]["hidden"], scenario["model"]["vocab"]
    whole = scenario.get("mesh", {}).get("embedding", "replicated") == "replicated"
    if kind == "embedding" and whole:
        return int(rows * hidden)
    while rows % mesh.sizes["tp"]:
        rows += 1
    share = rows // mesh.sizes["tp"] * hidden
    return int(share + (hidden if kind == "head" else 0))

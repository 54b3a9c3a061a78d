"""Expert-parallel load balancing: which experts to replicate, and on which GPU each replica goes.

The procedure of deepseek-ai/EPLB (@d52c72d, MIT), written anew in numpy. Hierarchical: expert groups are
packed onto nodes, experts replicated inside each node, replicas packed onto its GPUs. Global: the same
with one group and one node. Ties follow a stable sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.errors import ConfigError, divisors, listed, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

MAX_SLOTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Replication:
    """A slot table for each layer.

    ``slots``: ``[layers, slots]`` int64, the expert of each slot, GPU after GPU; ``replicas``: ``[layers,
    experts]`` int64; ``gpu_load``: ``[layers, gpus]`` float64, an expert's load shared by its replicas.
    """

    slots: Ints
    replicas: Ints
    gpu_load: Floats
    policy: str

    def balance(self) -> Floats:
        """max/mean of the GPUs' loads, ``[layers]``."""
        found: Floats = self.gpu_load.max(1) / self.gpu_load.mean(1)
        return found

    def placement(self, layers: Sequence[int]) -> dict[str, Any]:
        """The slot tables as a scenario file takes them; the first layer's serves any other."""
        by_layer = {str(layer): row.tolist() for layer, row in zip(layers, self.slots, strict=True)}
        return {"kind": "table", "slots": self.slots[0].tolist(), "slots_by_layer": by_layer}

    def to_dict(self, layers: Sequence[int]) -> dict[str, Any]:
        """JSON values; ``placement`` is what a scenario file takes."""
        return {
            "policy": self.policy,
            "placement": self.placement(layers),
            "replicas": self.replicas.tolist(),
        }


def one_more_slots(experts: int, ep: int) -> int:
    """Slots that give every EP rank one more than its experts need.

    >>> one_more_slots(256, 32)
    288
    """
    return (-(-experts // ep) + 1) * ep


def check_slots(slots: int, layers: int) -> None:
    """Refuse more slots than are packed in a moment.

    Raises:
        ConfigError: above ``MAX_SLOTS`` over all layers.
    """
    if layers * slots > MAX_SLOTS:
        rule = f"in each of {layers} layers are more than the {MAX_SLOTS:,} that are packed one by one"
        raise ConfigError("slots", slots, rule, "take fewer slots, or fewer layers")


def rebalance(loads: Floats, *, slots: int, groups: int, nodes: int, gpus: int) -> Replication:
    """Slot tables for ``loads`` ``[layers, experts]``.

    Hierarchical when ``nodes`` divides ``groups``, else global.

    Raises:
        ConfigError: for sizes that do not divide, or loads that are no numbers of 0 or more.
    """
    weights = _checked(loads, slots=slots, groups=groups, nodes=nodes, gpus=gpus)
    check_slots(slots, len(weights))
    policy = "hierarchical" if groups % nodes == 0 else "global"
    if policy == "global":
        groups = nodes = 1
    tables = np.stack([_one_layer(row, slots, groups, nodes, gpus) for row in weights])
    replicas = np.stack([np.bincount(table, minlength=weights.shape[1]) for table in tables])
    each = np.take_along_axis(weights / replicas, tables, axis=1)
    return Replication(tables, replicas, each.reshape(len(tables), gpus, -1).sum(2), policy)


def _one_layer(weights: Floats, slots: int, groups: int, nodes: int, gpus: int) -> Ints:
    """Expert of each slot ``[slots]``."""
    size = len(weights) // groups
    # 1. Groups to nodes: each node's experts, in the order its groups were packed.
    packed = pack(weights.reshape(groups, size).sum(1), nodes)
    by_node = [(np.array(node)[:, None] * size + np.arange(size)).reshape(-1) for node in packed]
    table = []
    for experts in by_node:
        # 2. Replicas inside the node.
        copies = replicate(weights[experts], slots // nodes)
        counts = np.bincount(copies, minlength=len(experts))
        # 3. Replicas to the node's GPUs.
        for gpu in pack((weights[experts] / counts)[copies], gpus // nodes):
            table += [int(experts[copies[item]]) for item in gpu]
    return np.array(table, np.int64)


def pack(weights: Floats, packs: int) -> list[list[int]]:
    """Items of each pack: heaviest first, each to the lightest pack that has room.

    Every pack gets the same number of items; as many packs as items keep the items' order.

    >>> pack(np.array([5.0, 4, 3, 2]), 2)
    [[0, 3], [1, 2]]
    """
    room = len(weights) // packs
    found: list[list[int]] = [[] for _ in range(packs)]
    if room == 1:
        return [[item] for item in range(packs)]
    sums = [0.0] * packs
    for item in np.argsort(-weights, kind="stable").tolist():
        lightest = min((p for p in range(packs) if len(found[p]) < room), key=sums.__getitem__)
        found[lightest].append(item)
        sums[lightest] += float(weights[item])
    return found


def replicate(weights: Floats, slots: int) -> Ints:
    """Item of each slot ``[slots]``: every item once, then again and again the one heaviest a replica.

    >>> replicate(np.array([9.0, 1.0, 4.0]), 5).tolist()
    [0, 1, 2, 0, 0]
    """
    counts = np.ones(len(weights), np.int64)
    found = list(range(len(weights)))
    for _ in range(slots - len(weights)):
        heaviest = int(np.argmax(weights / counts))
        found.append(heaviest)
        counts[heaviest] += 1
    return np.array(found, np.int64)


def _checked(loads: Floats, *, slots: int, groups: int, nodes: int, gpus: int) -> Floats:
    for name, value in (("slots", slots), ("groups", groups), ("nodes", nodes), ("gpus", gpus)):
        whole_number(f"eplb.{name}", value)
    weights = np.asarray(loads, np.float64)
    if weights.ndim != 2 or not np.isfinite(weights).all() or (weights < 0).any():
        got = f"{weights.dtype} {list(weights.shape)}"
        raise ConfigError(
            "eplb.loads", got, "must be numbers of 0 or more [layers, experts]", "mend the loads"
        )
    experts = weights.shape[1]
    for name, value, rule, holds in (
        ("slots", slots, f"must hold all {experts} experts", slots >= experts),
        ("slots", slots, f"must divide over {gpus} GPUs", slots % gpus == 0),
        ("gpus", gpus, f"must divide over {nodes} nodes", gpus % nodes == 0),
        ("groups", groups, f"must divide {experts} experts", experts % groups == 0),
    ):
        if not holds:
            up = -(-max(slots, experts) // gpus) * gpus
            fixes = {"slots": f"try slots = {up}", "groups": f"try groups = {listed(divisors(experts))}"}
            raise ConfigError(f"eplb.{name}", value, rule, fixes.get(name, f"try {nodes} or a multiple"))
    return weights

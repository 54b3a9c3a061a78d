"""The checkpoint cut as the mesh says: heads and vocabulary over tp, layers over pp, experts over ep, etp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.mesh.axes import Axis
from tracer.proof.replay.checkpoint import Checkpoint
from tracer.proof.replay.layer.maths import FloatArray
from tracer.scenario.plan import Contract, Embedding

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def bounds(size: int, index: int, parts: int) -> tuple[int, int]:
    """Start and end of part ``index`` of ``size`` elements cut in ``parts``.

    >>> bounds(10, 1, 4)
    (2, 5)
    """
    return size * index // parts, size * (index + 1) // parts


def cut_columns(matrix: FloatArray, index: int, parts: int) -> FloatArray:
    """A column-parallel matrix's part: outputs are split."""
    low, high = bounds(matrix.shape[-1], index, parts)
    return matrix[..., low:high]


def cut_rows(matrix: FloatArray, index: int, parts: int) -> FloatArray:
    """A row-parallel matrix's part: inputs are split, outputs are partial sums."""
    low, high = bounds(matrix.shape[-2], index, parts)
    return matrix[..., low:high, :]


def cut_vocabulary(table: FloatArray, index: int, parts: int) -> FloatArray:
    """A TP rank's ``ceil(vocab / tp)`` rows of a table ``[vocab, hidden]``, zero rows where it runs out."""
    share = -(-table.shape[0] // parts)
    held = table[index * share : (index + 1) * share]
    return np.concatenate((held, np.zeros((share - len(held), table.shape[1]))))


def shard(scenario: Scenario, checkpoint: Checkpoint, rank: int) -> Checkpoint:
    """What one rank holds, by name; views into the checkpoint where nothing is padded."""
    mesh = scenario.mesh
    tp, size, stage = mesh.dense.coordinate(rank, Axis.TP), mesh.tp, mesh.stage_of(rank)
    held: Checkpoint = {}
    if stage == 0:
        split = scenario.plan.embedding is Embedding.VOCAB_PARALLEL
        held["embed"] = cut_vocabulary(checkpoint["embed"], tp, size) if split else checkpoint["embed"]
    if stage == scenario.head_stage:
        held["head"] = cut_vocabulary(checkpoint["head"], tp, size)
        held["norm"] = checkpoint["norm"]
    for layer in scenario.layers_of(stage):
        whole = {name: value for name, value in checkpoint.items() if name.startswith(f"{layer}.")}
        held |= _layer_shard(scenario, layer, whole, rank)
    return held


def _layer_shard(scenario: Scenario, layer: int, whole: Checkpoint, rank: int) -> Checkpoint:
    tp, size = scenario.mesh.dense.coordinate(rank, Axis.TP), scenario.mesh.tp
    split_dense, split_shared = scenario.dense_tp > 1, scenario.plan.slices_shared
    held: Checkpoint = {}
    for name, value in whole.items():
        part = name.split(".", 1)[1]
        if part.startswith("experts.") or (part.startswith("shared.") and scenario.plan.shared_routed):
            continue
        split = not (part.startswith("dense.") and not split_dense) and not (
            part.startswith("shared.") and not split_shared
        )
        held[name] = _cut(scenario, part, value, tp, size) if split else value
    if scenario.model.is_moe(layer):
        held |= _experts(scenario, layer, whole, rank)
    return held


def _cut(scenario: Scenario, part: str, value: FloatArray, tp: int, size: int) -> FloatArray:
    """One weight's share of a TP rank; norms, routers and latents are whole on each."""
    if part in ("k", "v"):
        kv_heads = scenario.model.need("kv_heads", "cut K and V")
        parts = min(size, kv_heads)
        return cut_columns(value, tp * parts // size, parts)
    if part in ("q", "k_up", "v_up") or part.endswith((".gate", ".up")):
        return cut_columns(value, tp, size)
    if part == "o" or part.endswith(".down"):
        return cut_rows(value, tp, size)
    return value


def _experts(scenario: Scenario, layer: int, whole: Checkpoint, rank: int) -> Checkpoint:
    """Slices of the experts in a rank's slots, under ``layer.expert.etp.gate`` and so on."""
    mesh = scenario.mesh
    if scenario.plan.contract is Contract.TP:
        index, parts = mesh.dense.coordinate(rank, Axis.TP), mesh.tp
        experts: tuple[int, ...] = tuple(range(scenario.placement_of(layer).experts))
    else:
        index, parts = mesh.expert_coordinate(rank, Axis.ETP), mesh.etp
        experts = scenario.placement_of(layer).experts_of(mesh.expert_coordinate(rank, Axis.EP))
    held: Checkpoint = {}
    for expert in experts:
        name, matrices = expert_name(layer, expert, index), _expert(scenario, layer, whole, expert)
        held[f"{name}.gate"] = cut_columns(matrices["gate"], index, parts)
        held[f"{name}.up"] = cut_columns(matrices["up"], index, parts)
        held[f"{name}.down"] = cut_rows(matrices["down"], index, parts)
    return held


def _expert(scenario: Scenario, layer: int, whole: Checkpoint, expert: int) -> Checkpoint:
    """One expert's gate, up and down; numbers from ``model.experts`` on are shared experts that are routed.

    Those are equal parts of the shared block: a gated block is the sum of its parts.
    """
    model = scenario.model
    routed = model.need("experts", "tell routed experts from shared ones")
    if expert < routed:
        return {name: whole[f"{layer}.experts.{name}"][expert] for name in ("gate", "up", "down")}
    place, parts = expert - routed, model.shared_experts
    return {
        "gate": cut_columns(whole[f"{layer}.shared.gate"], place, parts),
        "up": cut_columns(whole[f"{layer}.shared.up"], place, parts),
        "down": cut_rows(whole[f"{layer}.shared.down"], place, parts),
    }


def expert_name(layer: int, expert: int, etp: int) -> str:
    """Name of one etp slice of an expert."""
    return f"{layer}.expert{expert}.{etp}"

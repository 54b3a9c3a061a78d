"""K/V that stays behind: what each GPU keeps of a layer, and whether that is what the owners' claim says.

Between pools it moves piece by piece, from the prefill GPUs to the decode GPUs, as the hand-over says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracer.memory.kv import kv_dcp, stored_heads
from tracer.memory.kv_owners import kv_owners
from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES
from tracer.proof.replay.layer.rows import Rows
from tracer.serving.kv_pieces import kv_pieces
from tracer.serving.pools import Pools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracer.proof.replay.layer.maths import FloatArray, IntArray
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.run import Run
    from tracer.scenario.scenario import Scenario
    from tracer.serving.kv_pieces import KvPiece


def kv_name(layer: int) -> str:
    """Name of the tensor that keeps a layer's K/V under token ids."""
    return f"kv.{layer}"


def keep_kv(run: Run, gpu: Gpu, layer: int, keys: IntArray, stored: FloatArray) -> None:
    """Keep the K/V of the tokens whose turn in the GPU's DCP group it is; padding and dummies are dropped."""
    scenario, batch = run.scenario, run.batch
    turn = scenario.mesh.dense.coordinate(gpu.rank, Axis.TP) % scenario.plan.dcp
    positions = batch.position[batch.rows_of(keys)].tolist()
    mine = np.array([kv_dcp(scenario, position) == turn for position in positions], dtype=bool)
    kept = mine & (keys >= 0)
    held = gpu.rows.get(kv_name(layer), Rows.empty(stored.shape[1]))
    gpu.rows[kv_name(layer)] = held.placed(keys[kept], stored[kept])


def kept_kv(gpu: Gpu, layer: int) -> Rows | None:
    """K/V that a GPU keeps of a layer, or None when it has none."""
    rows = gpu.rows.get(kv_name(layer))
    return rows if rows is not None and len(rows.keys) else None


def owner_difference(
    scenario: Scenario, gpus: Sequence[Gpu], replica: int, span: int, context: int
) -> str | None:
    """Where GPUs keep other K/V of a replica's first ``context`` positions than is claimed, if anywhere."""
    base = scenario.with_token(replica=replica, gpu=None, position=scenario.position)
    group = {gpu.rank: gpu for gpu in gpus if scenario.mesh.dense.coordinate(gpu.rank, Axis.DP) == replica}
    for layer in range(1, scenario.model.layers + 1):
        claimed: dict[int, list[int]] = {rank: [] for rank in group}
        for position in range(context):
            for weight_shard in kv_owners(base, position).of_layer(layer):
                claimed[weight_shard.rank].append(replica * span + position)
        for rank, gpu in group.items():
            rows = kept_kv(gpu, layer)
            found = [] if rows is None else rows.keys.tolist()
            if found != claimed[rank]:
                odd = sorted(set(found) ^ set(claimed[rank]))[0] - replica * span
                return f"layer {layer}: GPU {rank} differs from its claim on K/V of position {odd}"
    return None


def move_kv(pools: Pools, sources: Sequence[Gpu], targets: Sequence[Gpu], replica: int, span: int) -> int:
    """Move the K/V of a replica's whole prompt to the same replica of the decode pool; bytes moved.

    Raises:
        MissingRowError: when a rank is to send K/V that it does not keep.
    """
    pair = Pools(_serving(pools.prefill, replica), _serving(pools.decode, replica))
    moved = 0
    for position in range(pools.prefill.token.prompt):
        token = replica * span + position
        for piece in kv_pieces(pair, position):
            for layer in piece.layers:
                moved += _move(pair, piece, sources[piece.src], targets[piece.dst], layer, token)
    return moved


def _serving(scenario: Scenario, replica: int) -> Scenario:
    """The scenario with its token on another replica."""
    token = replace(scenario.token, replica=replica, gpu=None, slot=scenario.slot, position=scenario.position)
    return scenario.with_(token=token)


def _move(pair: Pools, piece: KvPiece, source: Gpu, target: Gpu, layer: int, token: int) -> int:
    """Copy one piece's columns of one layer; what is not there yet is NaN until its own piece comes."""
    key = np.array([token])
    row = source.at(kv_name(layer), key)[0]
    taken = _columns(pair.prefill, piece.src, piece.heads)
    placed = _columns(pair.decode, piece.dst, piece.heads)
    size = len(_columns(pair.decode, piece.dst, _held(pair.decode, piece.dst)))
    held = target.rows.get(kv_name(layer), Rows.empty(size))
    present = token in held.keys
    values = held.at(key)[0].copy() if present else np.full(size, np.nan)
    values[placed] = row[taken]
    target.rows[kv_name(layer)] = held.placed(key, values[None, :])
    return len(taken) * BYTES[pair.prefill.dtype.kv]


def _held(scenario: Scenario, rank: int) -> tuple[int, ...]:
    return tuple(stored_heads(scenario, rank))


def _columns(scenario: Scenario, rank: int, heads: tuple[int, ...]) -> IntArray:
    """Columns of a rank's K/V rows that hold some heads: keys come before values; MLA: all columns."""
    model, own = scenario.model, _held(scenario, rank)
    if model.mla and not own:
        return np.arange(model.kv_values_per_token)
    width = model.qk_head_dim if model.mla else model.need("head_dim", "cut K/V")
    value_width = model.need("v_head_dim", "cut K/V")
    places = [own.index(head) for head in heads]
    keys = [np.arange(width) + place * width for place in places]
    values = [len(own) * width + np.arange(value_width) + place * value_width for place in places]
    return np.concatenate((*keys, *values))

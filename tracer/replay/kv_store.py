"""K/V that stays behind: what each GPU keeps of a layer, and whether that is what the owners' claim says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.kv_layout import kv_dcp
from tracer.kv_owners import kv_owners
from tracer.replay.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracer.replay.arrays import FloatArray, IntArray
    from tracer.replay.machine import Gpu
    from tracer.replay.run import Run
    from tracer.scenario import Scenario


def kv_name(layer: int) -> str:
    """Name of the tensor that keeps a layer's K/V under token ids."""
    return f"kv.{layer}"


def keep_kv(run: Run, gpu: Gpu, layer: int, keys: IntArray, stored: FloatArray) -> None:
    """Keep the K/V of the tokens whose turn in the GPU's DCP group it is; padding and dummies are dropped."""
    scenario, batch = run.scenario, run.batch
    turn = scenario.mesh.dense.coordinate(gpu.rank, "tp") % scenario.plan.dcp
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
    group = {gpu.rank: gpu for gpu in gpus if scenario.mesh.dense.coordinate(gpu.rank, "dp") == replica}
    for layer in range(1, scenario.need_model().layers + 1):
        claimed: dict[int, list[int]] = {rank: [] for rank in group}
        for position in range(context):
            for holding in kv_owners(base, position).of_layer(layer):
                claimed[holding.rank].append(replica * span + position)
        for rank, gpu in group.items():
            rows = kept_kv(gpu, layer)
            found = [] if rows is None else rows.keys.tolist()
            if found != claimed[rank]:
                odd = sorted(set(found) ^ set(claimed[rank]))[0] - replica * span
                return f"layer {layer}: GPU {rank} differs from its claim on K/V of position {odd}"
    return None

"""Attention of a layer on the mesh: gather, project, exchange K/V, attend in parts, merge, sum."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from tracer.mesh.axes import Axis
from tracer.proof.replay.faults import Fault
from tracer.proof.replay.layer import grouped_attention, latent_attention
from tracer.proof.replay.layer.heads_over_cp import attend_by_heads, head_parts
from tracer.proof.replay.layer.kv_store import keep_kv
from tracer.proof.replay.layer.maths import Partial, attend, merge, merge_without_weights, rms_norm
from tracer.proof.replay.run import SUMS
from tracer.trip.hop import HopKind, Part

if TYPE_CHECKING:
    from tracer.proof.replay.layer.maths import IntArray
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.run import Run


def attention_block(run: Run, layer: int) -> None:
    """``hidden += attention(norm(hidden))``; K/V stay behind as ``kv.<layer>`` on their CP rank."""
    gpus = run.gpus_of_layer(layer)
    for gpu in gpus:
        hidden = gpu.held("hidden")
        run.put(gpu, "x", hidden.keys, rms_norm(hidden.values, gpu.weights[f"{layer}.norm1"]))
    run.hop(layer, Part.ATTENTION, (HopKind.ALL_GATHER,), "x")
    if head_parts(run) > 1:
        attend_by_heads(run, layer)
    else:
        attend_over_exchanged(run, layer)
    run.hop(layer, Part.ATTENTION, SUMS, "part")
    for gpu in gpus:
        run.add_to_hidden(gpu, "part")
    run.drop(layer, "x", "q", "kv", "part")
    run.check_hidden(layer, Part.ATTENTION)


def attend_over_exchanged(run: Run, layer: int) -> None:
    """Project, exchange K/V over CP, and attend to all of it in parts."""
    for gpu in run.gpus_of_layer(layer):
        project(run, gpu, layer)
    run.hop(layer, Part.ATTENTION, (HopKind.KV_EXCHANGE,), "kv")
    for gpu in run.gpus_of_layer(layer):
        _attend_and_project(run, gpu, layer)


def project(run: Run, gpu: Gpu, layer: int) -> None:
    """Queries ``q`` and K/V ``kv`` of every row that the GPU holds for its heads; K/V is kept."""
    rows = gpu.held("x")
    places = _rope_places(run, rows.keys)
    kind = latent_attention if run.scenario.model.mla else grouped_attention
    queries, stored = kind.project(run.scenario.model, gpu.weights, layer, rows.values, places)
    run.put(gpu, "q", rows.keys, queries)
    run.put(gpu, "kv", rows.keys, stored)
    keep_kv(run, gpu, layer, rows.keys, stored)


def _attend_and_project(run: Run, gpu: Gpu, layer: int) -> None:
    """The rank's share of the output projection, ``part`` ``[rows, hidden]``: row-parallel, a partial sum."""
    keys = gpu.held("q").keys
    partials = partial_attentions(run, gpu, layer)
    join = merge_without_weights if run.fault is Fault.MERGE_UNWEIGHTED else merge
    merged = reduce(join, (partial for _, partial in partials))
    if run.watch is not None:
        run.watch.attention(layer, gpu.rank, keys, partials, merged)
    heads = merged.out.reshape(len(keys), merged.out.shape[1] * merged.out.shape[2])
    run.put(gpu, "part", keys, heads @ gpu.weights[f"{layer}.o"])


def partial_attentions(run: Run, gpu: Gpu, layer: int) -> list[tuple[int, Partial]]:
    """(CP rank that the K/V came from, partial) in the order of the ring: own K/V first."""
    model, size = run.scenario.model, run.scenario.mesh.cp
    own = run.scenario.mesh.dense.coordinate(gpu.rank, Axis.CP)
    queries, stored = gpu.held("q"), gpu.held("kv")
    source = run.batch.cp[run.batch.rows_of(stored.keys)]
    kind = latent_attention if model.mla else grouped_attention
    heads = queries.values.reshape(len(queries.keys), queries.width // model.qk_head_dim, model.qk_head_dim)
    found = []
    for step in range(size):
        cp = (own - step) % size
        block = stored.kept(source == cp)
        keys, values = kind.open_kv(model, gpu.weights, layer, block.values)
        places = _mask_places(run, queries.keys), _mask_places(run, block.keys)
        found.append((cp, attend(heads, keys, values, *places)))
    return found


def _rope_places(run: Run, ids: IntArray) -> IntArray:
    """Position of each row for rotary embedding: the global one."""
    rows = run.batch.rows_of(ids)
    return (run.batch.index_in_cp if run.fault is Fault.ROPE_LOCAL else run.batch.position)[rows]


def _mask_places(run: Run, ids: IntArray) -> IntArray:
    """Position of each row for the causal mask: the global one."""
    batch = run.batch
    rows = batch.rows_of(ids)
    if run.fault is Fault.MASK_CONTIGUOUS:
        return np.asarray(batch.cp * batch.share + batch.index_in_cp)[rows]
    return batch.position[rows]

"""Attention with heads cut over context parallelism (Ulysses): scatter heads, attend, gather outputs.

A token's heads for the ``lane``-th of ``parts`` CP ranks have the key ``id · parts + lane``, and so has the
output that comes back. Under hierarchical CP the K/V of an inner group's tokens goes round a ring between
such groups before the rank attends.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from tracer.memory.kv import cut_heads
from tracer.mesh.axes import Axis
from tracer.proof.replay.faults import Fault
from tracer.proof.replay.layer import grouped_attention, latent_attention
from tracer.proof.replay.layer.kv_store import keep_kv, kept_kv
from tracer.proof.replay.layer.maths import Partial, attend, merge, merge_without_weights
from tracer.proof.replay.sent import Place
from tracer.trip.hop import HopKind, Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracer.proof.replay.layer.maths import FloatArray, IntArray
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.run import Parcel, Run


def head_parts(run: Run) -> int:
    """How many CP ranks share a token's heads; 1 where K/V travels instead."""
    return run.scenario.plan.head_parts(run.scenario.mesh.cp)


def attend_by_heads(run: Run, layer: int) -> None:
    """From the rows ``x`` of each GPU to its share of the output projection, ``part`` ``[rows, hidden]``."""
    gpus = run.gpus_of_layer(layer)
    for gpu in gpus:
        _project_heads(run, gpu, layer)
    _send(run, layer, HopKind.HEADS_SCATTER, "heads")
    for gpu in gpus:
        _unpack(run, gpu, layer)
    run.hop(layer, Part.ATTENTION, (HopKind.KV_EXCHANGE,), "kv")
    for gpu in gpus:
        _attend(run, gpu, layer)
    _send(run, layer, HopKind.HEADS_GATHER, "outputs")
    for gpu in gpus:
        ids, parts = gpu.held("x").keys, head_parts(run)
        heads = np.concatenate([gpu.at("outputs", ids * parts + lane) for lane in range(parts)], axis=1)
        run.put(gpu, "part", ids, heads @ gpu.weights[f"{layer}.o"])
    run.drop(layer, "heads", "outputs")


def _lane(run: Run, rank: int) -> int:
    return run.scenario.mesh.dense.coordinate(rank, Axis.CP) % head_parts(run)


def _project_heads(run: Run, gpu: Gpu, layer: int) -> None:
    """``heads``: for each lane the queries of its heads, then the keys and the values that they need."""
    model, rows, parts = run.scenario.model, gpu.held("x"), head_parts(run)
    batch = run.batch
    places = (batch.index_in_cp if run.fault is Fault.ROPE_LOCAL else batch.position)[
        batch.rows_of(rows.keys)
    ]
    kind = latent_attention if model.mla else grouped_attention
    flat, stored = kind.project(model, gpu.weights, layer, rows.values, places)
    keys, values = kind.open_kv(model, gpu.weights, layer, stored)
    queries = flat.reshape(len(flat), flat.shape[1] // model.qk_head_dim, model.qk_head_dim)
    ids, packed = [], []
    for lane in range(parts):
        kv_heads = list(cut_heads(range(keys.shape[1]), parts, lane))
        own = (queries[:, list(cut_heads(range(queries.shape[1]), parts, lane))], keys[:, kv_heads])
        packed.append(np.concatenate([_flat(each) for each in (*own, values[:, kv_heads])], axis=1))
        ids.append(rows.keys * parts + lane)
    order = np.argsort(np.concatenate(ids))
    run.put(gpu, "heads", np.concatenate(ids)[order], np.concatenate(packed)[order])


def _flat(heads: FloatArray) -> FloatArray:
    return heads.reshape(len(heads), heads.shape[1] * heads.shape[2])


def _send(run: Run, layer: int, kind: HopKind, tensor: str) -> None:
    """Take the rows' stops of a kind and move the heads that each transfer is for."""
    sends = list(_parcels(run, layer, kind))
    parts = head_parts(run)
    if sends:
        run.send_all(Place(layer, Part.ATTENTION, kind), tensor, sends, lambda keys: keys // parts)


def _parcels(run: Run, layer: int, kind: HopKind) -> Iterator[tuple[int, Parcel]]:
    parts = head_parts(run)
    for halt in run.walk.take(layer, Part.ATTENTION, (kind,)):
        token = int(run.batch.ids[halt.row])
        for transfer in run.walk.transfers(halt):
            computes = transfer.dst if kind is HopKind.HEADS_SCATTER else transfer.src
            yield 0, (transfer.role, transfer.src, transfer.dst, token * parts + _lane(run, computes))


def _unpack(run: Run, gpu: Gpu, layer: int) -> None:
    """The heads that the GPU computes, as ``q`` and ``kv`` by token; the K/V is kept."""
    model, rows, parts = run.scenario.model, gpu.held("heads"), head_parts(run)
    mine = rows.kept(rows.keys % parts == _lane(run, gpu.rank))
    size = model.need("heads", "cut the heads") // run.scenario.mesh.tp // parts * model.qk_head_dim
    ids = mine.keys // parts
    run.put(gpu, "q", ids, mine.values[:, :size])
    run.put(gpu, "kv", ids, mine.values[:, size:])
    keep_kv(run, gpu, layer, ids, mine.values[:, size:])


def _attend(run: Run, gpu: Gpu, layer: int) -> None:
    """Attention of the GPU's heads, into ``outputs``: in parts by the inner group the K/V came from."""
    model, rows, parts = run.scenario.model, gpu.held("q"), head_parts(run)
    queries = rows.values.reshape(len(rows.keys), rows.width // model.qk_head_dim, model.qk_head_dim)
    partials = list(_partials(run, gpu, layer, queries, rows.keys))
    join = merge_without_weights if run.fault is Fault.MERGE_UNWEIGHTED else merge
    merged = reduce(join, (partial for _, partial in partials))
    if run.watch is not None:
        run.watch.attention(layer, gpu.rank, rows.keys, partials, merged)
    run.put(gpu, "outputs", rows.keys * parts + _lane(run, gpu.rank), _flat(merged.out))


def _partials(
    run: Run, gpu: Gpu, layer: int, queries: FloatArray, ids: IntArray
) -> Iterator[tuple[int, Partial]]:
    """(CP rank, partial) for each inner group, the GPU's own first; in decode over all that is kept."""
    batch, parts = run.batch, head_parts(run)
    places = _mask_places(run, ids)
    if run.scenario.decodes:
        kept = kept_kv(gpu, layer)
        stored = gpu.held("kv").values[:0] if kept is None else kept.values
        positions = np.zeros(0, dtype=np.int64) if kept is None else kept.keys % batch.span
        yield (
            run.scenario.mesh.dense.coordinate(gpu.rank, Axis.CP),
            _over(run, queries, stored, places, positions),
        )
        return
    groups, stored_rows = run.scenario.mesh.cp // parts, gpu.held("kv")
    own = run.scenario.mesh.dense.coordinate(gpu.rank, Axis.CP)
    source = batch.cp[batch.rows_of(stored_rows.keys)] // parts
    for step in range(groups):
        group = (own // parts - step) % groups
        block = stored_rows.kept(source == group)
        found = _over(run, queries, block.values, places, _mask_places(run, block.keys))
        yield group * parts + own % parts, found


def _over(
    run: Run, queries: FloatArray, stored: FloatArray, places: IntArray, key_places: IntArray
) -> Partial:
    """Attention over K/V rows ``[rows, kv heads · (key + value width)]``, keys first."""
    model = run.scenario.model
    width, value_width = model.qk_head_dim, model.need("v_head_dim", "cut the heads")
    heads = stored.shape[1] // (width + value_width)
    keys = stored[:, : heads * width].reshape(len(stored), heads, width)
    values = stored[:, heads * width :].reshape(len(stored), heads, value_width)
    return attend(queries, keys, values, places, key_places)


def _mask_places(run: Run, ids: IntArray) -> IntArray:
    """Position of each row for the causal mask: the global one."""
    batch = run.batch
    rows = batch.rows_of(ids)
    if run.fault is Fault.MASK_CONTIGUOUS:
        return np.asarray(batch.cp * batch.share + batch.index_in_cp)[rows]
    return batch.position[rows]

"""Attention of one decode step on the mesh: K/V is written first, then queries and kept K/V meet.

Pass-Q: a query's row has the key ``id · world + asker``; the partial that a keeper returns for it has
``(id · world + asker) · world + keeper`` and is ``[outputs, m, ℓ]`` of the asker's heads.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from tracer.memory.kv import kv_cp, shard_peers
from tracer.proof.replay.faults import Fault
from tracer.proof.replay.layer import grouped_attention, latent_attention
from tracer.proof.replay.layer.absorbed import (
    heads_of_output,
    keys_and_values,
    output_width,
    queries_to_send,
    query_width,
)
from tracer.proof.replay.layer.heads_over_cp import attend_by_heads, head_parts
from tracer.proof.replay.layer.kv_store import keep_kv, kept_kv
from tracer.proof.replay.layer.maths import Partial, attend, merge, merge_without_weights, rms_norm
from tracer.proof.replay.machine import Machine
from tracer.proof.replay.run import SUMS, stepped
from tracer.proof.replay.sent import Ledger, Place
from tracer.scenario.plan import DecodeAttention
from tracer.trip import hops
from tracer.trip.hop import HopKind, Part, Where
from tracer.trip.hops.cp import attention_way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracer.proof.replay.layer.maths import FloatArray, IntArray
    from tracer.proof.replay.layer.rows import Rows
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.run import Parcel, Run

    KeyOf = Callable[[int, int, int], int]


def decode_attention_block(run: Run, layer: int) -> None:
    """``hidden += attention(norm(hidden))`` of the step's rows over all K/V that their requests have."""
    gpus = run.gpus_of_layer(layer)
    for gpu in gpus:
        hidden = gpu.rows["hidden"]
        run.put(gpu, "x", hidden.keys, rms_norm(hidden.values, gpu.weights[f"{layer}.norm1"]))
    run.hop(layer, Part.ATTENTION, (HopKind.ALL_GATHER,), "x")
    if head_parts(run) > 1:
        attend_by_heads(run, layer)
    else:
        for gpu in gpus:
            _project_and_write(run, gpu, layer)
        (_pass_kv if attention_way(run.scenario) is DecodeAttention.PASS_KV else _pass_q)(run, layer)
    run.hop(layer, Part.ATTENTION, SUMS, "part")
    for gpu in gpus:
        run.add_to_hidden(gpu, "part")
    run.drop(layer, "x", "ask", "q", "kv", "partial", "part")
    run.check_hidden(layer, Part.ATTENTION)


def _project_and_write(run: Run, gpu: Gpu, layer: int) -> None:
    """Queries ``ask`` in the form that travels, and K/V ``kv``, which its owners keep at once."""
    model, rows = run.scenario.model, gpu.rows["x"]
    batch = run.batch
    places = (batch.index_in_cp if run.fault is Fault.ROPE_LOCAL else batch.position)[
        batch.rows_of(rows.keys)
    ]
    kind = latent_attention if model.mla else grouped_attention
    queries, stored = kind.project(model, gpu.weights, layer, rows.values, places)
    asked = queries_to_send(model, gpu.weights, layer, queries)
    run.put(gpu, "ask", rows.keys * _world(run) + gpu.rank, asked)
    run.put(gpu, "kv", rows.keys, stored)
    keep_kv(run, gpu, layer, rows.keys, stored)


def _world(run: Run) -> int:
    return run.scenario.mesh.world_size


# -- the query goes to the K/V ------------------------------------------------------------------------------
def _pass_q(run: Run, layer: int) -> None:
    """Send queries, attend where K/V is kept, return partials, merge them where the query came from."""
    world, gpus = _world(run), run.gpus_of_layer(layer)
    _send(run, layer, HopKind.QUERY_SEND, "ask", lambda token, src, dst: token * world + src, world)
    for gpu in gpus:
        asked = gpu.rows["ask"]
        partial = _attend(run, gpu, layer, asked, kept_kv(gpu, layer))
        run.put(gpu, "partial", asked.keys * world + gpu.rank, _packed(partial))
    returned = HopKind.PARTIALS_RETURN
    _send(
        run, layer, returned, "partial", lambda token, src, dst: (token * world + dst) * world + src, world**2
    )
    for gpu in gpus:
        ids = gpu.rows["x"].keys
        keepers = [gpu.rank, *shard_peers(run.scenario, gpu.rank)]
        parts = [gpu.at("partial", (ids * world + gpu.rank) * world + keeper) for keeper in keepers]
        _project_out(run, gpu, layer, ids, [_unpacked(run, part) for part in parts])


def _send(run: Run, layer: int, kind: HopKind, tensor: str, key: KeyOf, stride: int) -> None:
    """Take the rows' stops of a kind and move a tensor whose keys hold more than the token."""
    sends = list(_parcels(run, layer, kind, key))
    if sends:
        run.send_all(Place(layer, Part.ATTENTION, kind), tensor, sends, lambda keys: keys // stride)


def _parcels(run: Run, layer: int, kind: HopKind, key: KeyOf) -> Iterator[tuple[int, Parcel]]:
    for halt in run.walk.take(layer, Part.ATTENTION, (kind,)):
        token = int(run.batch.ids[halt.row])
        for transfer in run.walk.transfers(halt):
            yield 0, (transfer.role, transfer.src, transfer.dst, key(token, transfer.src, transfer.dst))


def _attend(run: Run, gpu: Gpu, layer: int, asked: Rows, kept: Rows | None) -> Partial:
    """Partial attention of queries over K/V at hand, by positions; none at hand leaves nothing."""
    model, batch = run.scenario.model, run.batch
    width = query_width(model)
    heads = asked.values.reshape(len(asked.keys), asked.width // width, width)
    if kept is None:
        empty = np.zeros((*heads.shape[:2], output_width(model)))
        return Partial(empty, np.full(heads.shape[:2], -np.inf), np.zeros(heads.shape[:2]))
    keys, values = keys_and_values(model, gpu.weights, layer, kept.values)
    places = batch.position[batch.rows_of(asked.keys // _world(run))]
    return attend(heads, keys, values, places, kept.keys % batch.span)


def _packed(partial: Partial) -> FloatArray:
    """Outputs, m and ℓ side by side, ``[rows, heads · (width + 2)]``."""
    flat = partial.out.reshape(len(partial.out), partial.out.shape[1] * partial.out.shape[2])
    return np.concatenate((flat, partial.top, partial.total), axis=1)


def _unpacked(run: Run, rows: FloatArray) -> Partial:
    width = output_width(run.scenario.model)
    heads = rows.shape[1] // (width + 2)
    out, top, total = np.split(rows, (heads * width, heads * (width + 1)), axis=1)
    return Partial(out.reshape(len(rows), heads, width), top, total)


def _project_out(run: Run, gpu: Gpu, layer: int, ids: IntArray, partials: list[Partial]) -> None:
    """Merge, and take the rank's share of the output projection, ``part`` ``[rows, hidden]``."""
    join = merge_without_weights if run.fault is Fault.MERGE_UNWEIGHTED else merge
    merged = reduce(join, partials)
    heads = heads_of_output(run.scenario.model, gpu.weights, layer, merged.out)
    run.put(gpu, "part", ids, heads @ gpu.weights[f"{layer}.o"])


# -- K/V goes to the query ----------------------------------------------------------------------------------
def _pass_kv(run: Run, layer: int) -> None:
    """Exchange the step's K/V as the trips say and the context's the same way, then attend at home."""
    run.hop(layer, Part.ATTENTION, (HopKind.KV_EXCHANGE,), "kv")
    gpus = run.gpus_of_layer(layer)
    for gpu in gpus:
        kept = kept_kv(gpu, layer)
        if kept is not None:
            gpu.rows["kv"] = gpu.rows["kv"].placed(kept.keys, kept.values)
    _exchange_context(run, layer)
    for gpu in gpus:
        rows = gpu.rows["kv"]
        partial = _attend(run, gpu, layer, gpu.rows["ask"], rows.kept(rows.keys >= 0))
        _project_out(run, gpu, layer, gpu.rows["x"].keys, [partial])


def _exchange_context(run: Run, layer: int) -> None:
    """Move K/V of all earlier positions; it is no part of the new tokens' trips, so its ledger is apart."""
    scenario, batch = run.scenario, run.batch
    real = batch.ids >= 0
    sends: list[tuple[int, Parcel]] = []
    stage = run.scenario.stage_of_layer(layer)
    for replica, position in zip(batch.replica[real].tolist(), batch.position[real].tolist(), strict=True):
        for earlier in range(position):
            cp = kv_cp(scenario, earlier)
            home = scenario.mesh.rank(tp=0, cp=cp, dp=replica, pp=stage)
            where = Where(layer, stage, earlier, home, Part.ATTENTION)
            sends += stepped(hops.kv_exchange(scenario, where).transfers, batch.id_of(replica, earlier))
    apart = Machine(run.machine.gpus, Ledger(scenario))
    place = Place(layer, Part.ATTENTION, HopKind.KV_EXCHANGE)
    for step in sorted({step for step, _ in sends}):
        rows = [(src, dst, key) for at, (_, src, dst, key) in sends if at == step]
        src, dst, keys = np.array(rows, dtype=np.int64).T
        apart.send(place, "kv", step, "kv", (src, dst, keys), lambda ids: ids)
    run.context_bytes += apart.ledger.bytes_moved()

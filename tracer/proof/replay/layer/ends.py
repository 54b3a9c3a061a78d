"""The two ends of the model: landing with the embedding, and the LM head split by vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.mesh.axes import Axis
from tracer.proof.replay.layer.maths import rms_norm
from tracer.proof.replay.layer.sharded_weights import gather_unit, note_gathers
from tracer.proof.replay.run import SUMS, stepped
from tracer.proof.replay.sent import Place
from tracer.scenario.plan import Embedding
from tracer.trip.hop import HopKind, Part

if TYPE_CHECKING:
    from tracer.proof.replay.layer.maths import FloatArray, IntArray
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.run import Run


def land_and_embed(run: Run) -> None:
    """Put every row on the GPUs that landing names, as ``hidden`` ``[rows, hidden]``."""
    held: dict[int, list[int]] = {}
    for halt in run.walk.take(0, Part.LAND, (HopKind.LAND,)):
        for rank in halt.build(run.scenario, halt.where).held:
            held.setdefault(rank, []).append(int(run.batch.ids[halt.row]))
    gathers = gather_unit(run, 0, Part.EMBEDDING)
    split = run.scenario.plan.embedding is Embedding.VOCAB_PARALLEL
    for gpu in run.stage_gpus(0):
        ids = _ids_in_cp(run, gpu) if split else np.array(held[gpu.rank], dtype=np.int64)
        run.put(gpu, "embedding", ids, _look_up(run, gpu, ids))
    note_gathers(run, 0, Part.EMBEDDING, gathers)
    run.hop(0, Part.EMBEDDING, SUMS, "embedding")
    for gpu in run.stage_gpus(0):
        ids = np.array(held[gpu.rank], dtype=np.int64)
        run.put(gpu, "hidden", ids, gpu.at("embedding", ids))
        del gpu.rows["embedding"]
    if run.watch is not None:
        place = Place(0, Part.LAND, HopKind.LAND)
        run.watch.look(run.machine, place, "hidden", lambda keys: keys)
    run.check_hidden(0, Part.EMBEDDING)


def _ids_in_cp(run: Run, gpu: Gpu) -> IntArray:
    """Ids of all rows of the GPU's CP rank: those whose home is in its TP group."""
    group = np.array(list(run.scenario.mesh.dense.group(gpu.rank, Axis.TP)))
    return run.batch.ids[np.isin(run.batch.home, group)]


def _look_up(run: Run, gpu: Gpu, ids: IntArray) -> FloatArray:
    """Embedding rows ``[ids, hidden]``; a vocabulary shard gives 0 for words that lie in another."""
    words, table = run.batch.words[run.batch.rows_of(ids)], gpu.weights["embed"]
    if run.scenario.plan.embedding is not Embedding.VOCAB_PARALLEL:
        return table[words]
    here = words - run.scenario.mesh.dense.coordinate(gpu.rank, Axis.TP) * len(table)
    inside = (here >= 0) & (here < len(table))
    return np.where(inside[:, None], table[np.where(inside, here, 0)], 0.0)


def pass_on(run: Run, layer: int, stage: int) -> None:
    """Pipeline send after a chunk's last layer: ``hidden`` rows leave for the next layer's stage."""
    run.hop(layer, Part.PIPELINE, (HopKind.PP_SEND,), "hidden")
    run.machine.note_memory()
    for gpu in run.stage_gpus(stage):
        gpu.rows.pop("hidden", None)


def lm_head(run: Run) -> None:
    """Logits of the rows that need them, at home; each TP rank computes its part of the vocabulary.

    Partial logits lie under ``id · world + rank``, so that the home can put them in order.
    """
    layer = run.scenario.model.layers
    wanted = run.batch.ids[run.batch.to_head]
    gathers = gather_unit(run, layer, Part.HEAD)
    for gpu in run.stage_gpus(run.scenario.head_stage):
        hidden = gpu.held("hidden").kept(np.isin(gpu.held("hidden").keys, wanted))
        run.put(gpu, "final", hidden.keys, rms_norm(hidden.values, gpu.weights["norm"]))
    run.hop(layer, Part.HEAD, (HopKind.HEAD_COPY,), "final")
    world = run.scenario.mesh.world_size
    for gpu in run.stage_gpus(run.scenario.head_stage):
        final = gpu.held("final")
        run.put(gpu, "logits", final.keys * world + gpu.rank, final.values @ gpu.weights["head"].T)
    note_gathers(run, layer, Part.HEAD, gathers)
    _gather_logits(run, layer)
    _put_in_order(run, layer, wanted)


def _gather_logits(run: Run, layer: int) -> None:
    world, ids = run.scenario.mesh.world_size, run.batch.ids
    halts = run.walk.take(layer, Part.HEAD, (HopKind.LOGITS_GATHER,))
    sends = [
        (step, (role, src, dst, key * world + src))
        for halt in halts
        for step, (role, src, dst, key) in stepped(run.walk.transfers(halt), int(ids[halt.row]))
    ]
    place = Place(layer, Part.HEAD, HopKind.LOGITS_GATHER)
    run.send_all(place, "logits", sends, lambda keys: keys // world)


def _put_in_order(run: Run, layer: int, wanted: IntArray) -> None:
    """Each home joins its group's parts of the vocabulary and cuts the padding off."""
    world, vocab = run.scenario.mesh.world_size, run.scenario.model.need("vocab", "cut the logits")
    for gpu in run.stage_gpus(run.scenario.head_stage):
        ids = np.intersect1d(run.home_rows(gpu), wanted)
        group = list(run.scenario.mesh.dense.group(gpu.rank, Axis.TP))
        parts = [gpu.at("logits", ids * world + rank) for rank in group]
        run.checks.logits(run.batch, gpu, ids, np.concatenate(parts, axis=1)[:, :vocab])
    run.machine.note_memory()

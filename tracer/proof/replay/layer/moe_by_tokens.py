"""Contracts ``ep`` and ``ag_rs``: rows travel to the experts' GPUs, weighted sums travel back.

A row's copy dispatched by GPU g has the key ``id · world + g``: without SP each TP rank dispatches its
own. A low-latency result is one message for each expert, under ``copy · (experts + 1) + 1 + expert``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracer.proof.replay.faults import Fault
from tracer.proof.replay.layer.experts import Jobs, merged_shared, run_jobs, slices_of
from tracer.proof.replay.layer.gates import gate, source_rows
from tracer.proof.replay.layer.rows import Rows
from tracer.proof.replay.run import Parcel, stepped
from tracer.proof.replay.sent import Place
from tracer.scenario.plan import Contract, DispatchMode, SharedTp, Sp
from tracer.trip import hops
from tracer.trip.hop import HopKind, Part, Transfer, Where
from tracer.trip.hops.ep import combine_to, dispatch_from
from tracer.trip.hops.moves import tp_ranks
from tracer.trip.hops.routes import expert_messages
from tracer.trip.hops.routing import probs_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracer.proof.replay.layer.maths import FloatArray, IntArray
    from tracer.proof.replay.layer.rows import Gates
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.run import Run
    from tracer.trip.itinerary import HopBuilder

    Planner = Callable[["Run", "Copy"], Iterator[tuple[Transfer, int]]]


class Copy(NamedTuple):
    """A row's copy on the GPU that dispatches it: where it is taken, with its picks and their weights."""

    key: int
    source: int
    where: Where
    weights: dict[int, float]


def experts_by_tokens(run: Run, layer: int) -> None:
    """Dispatch, run the experts, combine into ``moe`` on each GPU that dispatched."""
    gathers_first = run.fault is Fault.DISPATCH_TWICE and run.scenario.plan.sp is Sp.MEGATRON
    if gathers_first:
        _move_for_fault(run, layer, hops.all_gather, "x")
    copies = _load_copies(run, layer)
    _send(run, layer, HopKind.DISPATCH, "copies", copies, _plan_dispatch)
    if run.scenario.plan.routing_metadata:
        _send(run, layer, HopKind.PROBS_DISPATCH, "probs", copies, _plan_probabilities)
    _run_experts(run, layer, copies)
    _send(run, layer, HopKind.COMBINE, "result", copies, _plan_combine)
    _collect(run, layer)
    run.drop(layer, "copies", "result", "probs")
    if gathers_first:
        _move_for_fault(run, layer, hops.reduce_scatter, "moe")
    run.hop(layer, Part.MOE, (HopKind.ALL_GATHER,), "moe")


def _load_copies(run: Run, layer: int) -> dict[int, list[Copy]]:
    """Route the rows of each GPU that dispatches, and lay them out as copies; copies by row number."""
    world = run.scenario.mesh.world_size
    found: dict[int, list[Copy]] = {}
    for gpu in run.gpus_of_layer(layer):
        ids = source_rows(run, gpu)
        gates = gate(run, gpu, layer, ids)
        run.put(gpu, "copies", ids * world + gpu.rank, gpu.at("x", ids))
        columns = (
            run.batch.rows_of(ids).tolist(),
            ids.tolist(),
            gates.experts.tolist(),
            gates.weights.tolist(),
        )
        _hold_probabilities(run, gpu, ids * world + gpu.rank, gates)
        for row, token, experts, weights in zip(*columns, strict=True):
            where = run.where(row, layer)
            by_expert = dict(zip(experts, weights, strict=True))
            found.setdefault(row, []).append(Copy(token * world + gpu.rank, gpu.rank, where, by_expert))
    return found


def _send(
    run: Run, layer: int, kind: HopKind, tensor: str, copies: dict[int, list[Copy]], plan: Planner
) -> None:
    """Take the rows' stops of a kind and move every copy as its transfers say."""
    stride = run.scenario.mesh.world_size * (1 if tensor == "copies" else _result_stride(run))
    sends: list[tuple[int, Parcel]] = []
    for halt in run.walk.take(layer, Part.MOE, (kind,)):
        for copy in copies[halt.row]:
            planned = list(plan(run, copy))
            steps = stepped([transfer for transfer, _ in planned], 0)
            for (step, (role, src, dst, _)), (_, key) in zip(steps, planned, strict=True):
                sends.append((step, (role, src, dst, key)))
    if sends:
        run.send_all(Place(layer, Part.MOE, kind), tensor, sends, lambda keys: keys // stride)


def _plan_dispatch(run: Run, copy: Copy) -> Iterator[tuple[Transfer, int]]:
    """Transfers of a copy, each with the key of the row that it carries."""
    for transfer in dispatch_from(run.scenario, copy.where, copy.source):
        yield transfer, copy.key


def _plan_combine(run: Run, copy: Copy) -> Iterator[tuple[Transfer, int]]:
    """Transfers of a copy's results with the key of each; low latency returns one for each message."""
    stride = _result_stride(run)
    transfers = combine_to(run.scenario, copy.where, copy.source)
    if not _by_message(run):
        yield from ((transfer, copy.key * stride) for transfer in transfers)
        return
    messages = expert_messages(run.scenario, copy.where, copy.source)
    experts = [expert for expert, rank in messages if rank != copy.source]
    for transfer, expert in zip(transfers, experts, strict=True):
        yield transfer, copy.key * stride + 1 + expert


def _hold_probabilities(run: Run, gpu: Gpu, keys: IntArray, gates: Gates) -> None:
    """Each copy's gate weights as rows ``[messages, 1]``, keyed as the messages to its experts."""
    if run.scenario.plan.routing_metadata:
        messages = (keys[:, None] * _result_stride(run) + 1 + gates.experts).ravel()
        run.put(gpu, "probs", messages, gates.weights.reshape(-1, 1))


def _plan_probabilities(run: Run, copy: Copy) -> Iterator[tuple[Transfer, int]]:
    """The gate weight of each message of a copy, beside its row."""
    messages = expert_messages(run.scenario, copy.where, copy.source)
    experts = [expert for expert, rank in messages if rank != copy.source]
    for transfer, expert in zip(probs_from(run.scenario, copy.where, copy.source), experts, strict=True):
        yield transfer, copy.key * _result_stride(run) + 1 + expert


def _by_message(run: Run) -> bool:
    """Whether each expert's output travels alone."""
    plan = run.scenario.plan
    return plan.contract is Contract.EP and plan.dispatch is DispatchMode.LOW_LATENCY


def _result_stride(run: Run) -> int:
    model = run.scenario.model
    return model.need("experts", "key their results") + model.shared_experts + 1


def _run_experts(run: Run, layer: int, copies: dict[int, list[Copy]]) -> None:
    """Each GPU runs its experts on the copies that reached it, into ``result``.

    Under ``ag_rs`` every GPU that got a row sends a partial row back, of zeros when it ran nothing.
    """
    jobs = _assign(run, layer, copies)
    for gpu in run.gpus_of_layer(layer):
        mine = jobs.get(gpu.rank, Jobs())
        result = run_jobs(run, gpu, "copies", mine, slices_of(gpu.weights, layer))
        if run.scenario.plan.contract is Contract.AG_RS:
            rows = gpu.held("copies")
            result = result.added(rows.keys * _result_stride(run), _unpicked(run, gpu, layer, rows))
        gpu.rows["result"] = result


def _unpicked(run: Run, gpu: Gpu, layer: int, rows: Rows) -> FloatArray:
    """What a GPU returns for copies besides picked experts' outputs: 0, or its slice of the shared expert's.

    The slice is run for the copies that its own TP group dispatched.
    """
    found = np.zeros(rows.values.shape)
    if run.scenario.plan.shared_tp is SharedTp.MERGED:
        source = rows.keys % run.scenario.mesh.world_size
        peers = np.isin(source, tp_ranks(run.scenario, gpu.rank))
        found[peers] = merged_shared(run, gpu, layer, rows.values[peers])
    return found


def _assign(run: Run, layer: int, copies: dict[int, list[Copy]]) -> dict[int, Jobs]:
    """Jobs of each GPU: what the ids that travel with a copy tell it to run."""
    stride, by_message = _result_stride(run), _by_message(run)
    jobs: dict[int, Jobs] = {}
    for copy in (copy for of_row in copies.values() for copy in of_row):
        for expert, rank in expert_messages(run.scenario, copy.where, copy.source):
            result = copy.key * stride + (1 + expert if by_message else 0)
            run.stays[layer] = run.stays.get(layer, 0) + (rank == copy.source)
            weight = copy.weights[expert]
            if run.scenario.plan.routing_metadata:  # the one that arrived
                weight = float(run.machine.gpus[rank].at("probs", np.array([result]))[0, 0])
            jobs.setdefault(rank, Jobs()).add(copy.key, expert, weight, result)
    return jobs


def _collect(run: Run, layer: int) -> None:
    """Sum what came back for the copies that a GPU dispatched, into ``moe`` ``[rows, hidden]``."""
    stride, world = _result_stride(run), run.scenario.mesh.world_size
    for gpu in run.gpus_of_layer(layer):
        result = gpu.held("result")
        ids, source = np.divmod(result.keys // stride, world)
        own = source == gpu.rank
        gpu.rows["moe"] = Rows.empty(result.width).added(ids[own], result.values[own])


def _move_for_fault(run: Run, layer: int, build: HopBuilder, tensor: str) -> None:
    """A collective that the itinerary does not have, over every row of the layer's stage."""
    sends: list[tuple[int, Parcel]] = []
    for row, token in enumerate(run.batch.ids.tolist()):
        sends += stepped(build(run.scenario, run.where(row, layer)).transfers, token)
    kind = HopKind(build.__name__)
    run.send_all(Place(layer, Part.MOE, kind), tensor, sends, lambda keys: keys)

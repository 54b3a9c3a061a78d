"""The MoE block of a layer: shared expert, router, and experts by the deployment's contract.

Contract ``tp`` slices experts over TP inside the replica, and sums move as in a dense block. Under ``dwdp``
tokens stay, and every expert that is not local is pulled once per layer. ``moe_by_tokens`` has the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.proof.replay.layer.experts import (
    Jobs,
    merged_shared,
    normed_rows,
    run_jobs,
    shared_block,
    slices_of,
    sum_shared,
)
from tracer.proof.replay.layer.gates import gate, source_rows
from tracer.proof.replay.layer.moe_by_tokens import experts_by_tokens
from tracer.proof.replay.layer.routing_counts import exchange_counts
from tracer.proof.replay.layer.sharded_weights import gather_unit, note_gathers
from tracer.proof.replay.layer.shards import expert_name
from tracer.proof.replay.run import SUMS
from tracer.proof.replay.sent import Place, Pulled
from tracer.scenario.plan import Contract, SharedTp
from tracer.trip.hop import HopKind, Part, Role
from tracer.trip.hops.ep import experts_by_owner

if TYPE_CHECKING:
    from tracer.proof.replay.layer.rows import Gates
    from tracer.proof.replay.run import Run
    from tracer.trip.hop import Where


def experts_by_sums(run: Run, layer: int) -> None:
    """Gather rows over TP, run a slice of every picked expert, sum over TP into ``moe``."""
    run.hop(layer, Part.MOE, (HopKind.ALL_GATHER,), "x")
    for gpu in run.gpus_of_layer(layer):
        jobs = local_jobs(gate(run, gpu, layer, gpu.held("x").keys))
        found = run_jobs(run, gpu, "x", jobs, slices_of(gpu.weights, layer))
        if run.scenario.plan.shared_tp is SharedTp.MERGED:
            rows = gpu.held("x")
            found = found.added(rows.keys, merged_shared(run, gpu, layer, rows.values))
        gpu.rows["moe"] = found
    run.hop(layer, Part.MOE, SUMS, "moe")


def local_jobs(gates: Gates) -> Jobs:
    """Every pick of every row, run where the row is."""
    jobs = Jobs()
    columns = zip(gates.keys.tolist(), gates.experts.tolist(), gates.weights.tolist(), strict=True)
    for key, experts, weights in columns:
        for expert, weight in zip(experts, weights, strict=True):
            jobs.add(key, expert, weight, key)
    return jobs


Pull = tuple[int, int, tuple[int, ...]]
"""(owner, puller, experts)."""
MATRICES = ("gate", "up", "down")


def experts_by_weights(run: Run, layer: int) -> None:
    """Pull, then run every picked expert where its row is, into ``moe``.

    Pulled slices go to one of two buffers in turn, so that a layer's can arrive while the layer before
    still computes from the other.
    """
    for gpu in run.gpus_of_layer(layer):
        gpu.pulled[layer % 2].clear()
    _pull(run, layer)
    for gpu in run.gpus_of_layer(layer):
        jobs = local_jobs(gate(run, gpu, layer, source_rows(run, gpu)))
        held = slices_of(gpu.weights, layer) + slices_of(gpu.pulled[layer % 2], layer)
        gpu.rows["moe"] = run_jobs(run, gpu, "x", jobs, held)
    run.hop(layer, Part.MOE, (HopKind.ALL_GATHER,), "moe")


def _pull(run: Run, layer: int) -> None:
    """Every rank's pulls, each made once and told to the ledger with the tokens that it serves."""
    wanted: dict[Pull, list[int]] = {}
    for halt in run.walk.take(layer, Part.MOE, (HopKind.WEIGHT_PULL,)):
        token = int(run.batch.ids[halt.row])
        for transfer in halt.build(run.scenario, halt.where).transfers:
            experts = _experts_from(run, halt.where, transfer.src, transfer.dst)
            wanted.setdefault((transfer.src, transfer.dst, experts), []).append(token)
    place = Place(layer, Part.MOE, HopKind.WEIGHT_PULL)
    for (owner, puller, experts), tokens in wanted.items():
        elements = _copy(run, layer, owner, puller, experts)
        pulled = Pulled(place, Role.WEIGHTS, owner, puller, tuple(tokens), elements)
        run.machine.ledger.pulled.append(pulled)


def _experts_from(run: Run, where: Where, owner: int, puller: int) -> tuple[int, ...]:
    ep = run.scenario.mesh.expert_coordinate(owner, Axis.EP)
    return tuple(experts_by_owner(run.scenario, where, puller)[ep])


def _copy(run: Run, layer: int, owner: int, puller: int, experts: tuple[int, ...]) -> int:
    """Copy the owner's slices of experts into the puller's buffer; returns the elements that moved."""
    source, target = run.machine.gpus[owner].weights, run.machine.gpus[puller].pulled[layer % 2]
    etp = run.scenario.mesh.expert_coordinate(owner, Axis.ETP)
    elements = 0
    for expert in experts:
        for matrix in MATRICES:
            name = f"{expert_name(layer, expert, etp)}.{matrix}"
            target[name] = source[name].copy()
            elements += source[name].size
    return elements


BY_CONTRACT = {
    Contract.EP: experts_by_tokens,
    Contract.AG_RS: experts_by_tokens,
    Contract.TP: experts_by_sums,
    Contract.DWDP: experts_by_weights,
}


def moe_block(run: Run, layer: int) -> None:
    """``hidden += shared(x) + Σ weight · expert(x)`` with ``x = norm(hidden)``."""
    gathers = gather_unit(run, layer, Part.MOE)
    plan = run.scenario.plan
    merged = plan.shared_tp is SharedTp.MERGED
    shared = run.scenario.model.shared_experts > 0 and not plan.shared_routed and not merged
    if shared and not plan.shared_overlap:
        shared_block(run, layer)
        sum_shared(run, layer)
    normed_rows(run, layer, "x")
    if plan.routing_metadata:
        exchange_counts(run, layer)
    if shared and plan.shared_overlap:
        shared_block(run, layer)
    BY_CONTRACT[Contract(run.scenario.plan.contract)](run, layer)
    if shared and plan.shared_overlap:
        sum_shared(run, layer)
    for gpu in run.gpus_of_layer(layer):
        run.add_to_hidden(gpu, "moe")
        if shared:
            run.add_to_hidden(gpu, "shared")
    note_gathers(run, layer, Part.MOE, gathers)
    run.drop(layer, "x", "moe", "shared")
    run.check_hidden(layer, Part.MOE)

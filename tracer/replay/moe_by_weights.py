"""Contract ``dwdp``: tokens stay, and every expert that is not local is pulled, once a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.hop import HopKind, Part, Role
from tracer.hops.weight_pull import experts_by_owner
from tracer.replay.experts import run_jobs, slices_of
from tracer.replay.gates import gate
from tracer.replay.ledger import Place, Pulled
from tracer.replay.moe_by_sums import local_jobs
from tracer.replay.shards import expert_name
from tracer.replay.sources import source_rows

if TYPE_CHECKING:
    from tracer.hop import Where
    from tracer.replay.run import Run

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
    ep = run.scenario.mesh.expert_coordinate(owner, "ep")
    return tuple(experts_by_owner(run.scenario, where, puller)[ep])


def _copy(run: Run, layer: int, owner: int, puller: int, experts: tuple[int, ...]) -> int:
    """Copy the owner's slices of experts into the puller's buffer; returns the elements that moved."""
    source, target = run.machine.gpus[owner].weights, run.machine.gpus[puller].pulled[layer % 2]
    etp = run.scenario.mesh.expert_coordinate(owner, "etp")
    elements = 0
    for expert in experts:
        for matrix in MATRICES:
            name = f"{expert_name(layer, expert, etp)}.{matrix}"
            target[name] = source[name].copy()
            elements += source[name].size
    return elements

"""Contract ``tp``: experts sliced over TP inside the replica; sums move, as in a dense block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.hop import HopKind, Part
from tracer.replay.experts import Jobs, run_jobs, slices_of
from tracer.replay.gates import gate
from tracer.replay.run import SUMS

if TYPE_CHECKING:
    from tracer.replay.gates import Gates
    from tracer.replay.run import Run


def experts_by_sums(run: Run, layer: int) -> None:
    """Gather rows over TP, run a slice of every picked expert, sum over TP into ``moe``."""
    run.hop(layer, Part.MOE, (HopKind.ALL_GATHER,), "x")
    for gpu in run.gpus_of_layer(layer):
        jobs = local_jobs(gate(run, gpu, layer, gpu.held("x").keys))
        gpu.rows["moe"] = run_jobs(run, gpu, "x", jobs, slices_of(gpu.weights, layer))
    run.hop(layer, Part.MOE, SUMS, "moe")


def local_jobs(gates: Gates) -> Jobs:
    """Every pick of every row, run where the row is."""
    jobs = Jobs()
    columns = zip(gates.keys.tolist(), gates.experts.tolist(), gates.weights.tolist(), strict=True)
    for key, experts, weights in columns:
        for expert, weight in zip(experts, weights, strict=True):
            jobs.add(key, expert, weight, key)
    return jobs

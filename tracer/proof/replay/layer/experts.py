"""Feed-forward blocks on one GPU: the jobs of routed experts, and the blocks that every token passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracer.model.routers import Router, sigmoid
from tracer.proof.replay.layer.maths import rms_norm, swiglu
from tracer.proof.replay.layer.rows import Rows
from tracer.proof.replay.run import SUMS
from tracer.trip.hop import HopKind, Part

if TYPE_CHECKING:
    from tracer.proof.replay.checkpoint import Checkpoint
    from tracer.proof.replay.layer.maths import FloatArray
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.run import Run


@dataclass(slots=True)
class Jobs:
    """(row, expert, weight, result) of a GPU: run an expert on a row, add its output to a result."""

    rows: list[int] = field(default_factory=list)
    experts: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    def add(self, row: int, expert: int, weight: float, result: int) -> None:
        """One more job, by keys of the row and of the result."""
        self.rows.append(row)
        self.experts.append(expert)
        self.weights.append(weight)
        self.results.append(result)


def run_jobs(run: Run, gpu: Gpu, tensor: str, jobs: Jobs, held: list[tuple[int, Checkpoint]]) -> Rows:
    """Outputs by result key, ``[results, hidden]``, of jobs on a tensor's rows.

    Every expert held runs, on 0 rows if need be.
    ``held`` are the slices of experts at hand, one entry (expert, gate/up/down) a slice: slices of one
    expert add up. Each output is weighted here, or a routed expert's input where the model does so.
    """
    model = run.scenario.model
    by_input = Router.of(model).weighs_input
    experts, results = np.array(jobs.experts, np.int64), np.array(jobs.results, np.int64)
    keys, weights = np.array(jobs.rows, np.int64), np.array(jobs.weights)[:, None]
    inputs = gpu.at(tensor, keys)
    outputs = np.zeros(inputs.shape)
    for expert, slices in held:
        mine = np.flatnonzero(experts == expert)
        weighs_input = by_input and expert < model.need("experts", "tell routed experts from shared ones")
        entering = inputs[mine] * weights[mine] if weighs_input else inputs[mine]
        leaving = swiglu(entering, slices["gate"], slices["up"], slices["down"])
        outputs[mine] += leaving if weighs_input else leaving * weights[mine]
    return Rows.empty(inputs.shape[1]).added(results, outputs)


def slices_of(weights: Checkpoint, layer: int) -> list[tuple[int, Checkpoint]]:
    """(expert, its gate, up and down) of every expert slice of a layer among a GPU's weights."""
    found: dict[str, Checkpoint] = {}
    for name, value in weights.items():
        if name.startswith(f"{layer}.expert"):
            slice_name, matrix = name.rsplit(".", 1)
            found.setdefault(slice_name, {})[matrix] = value
    return [(int(name.split(".")[1].removeprefix("expert")), held) for name, held in found.items()]


def normed_rows(run: Run, layer: int, tensor: str) -> None:
    """The rows that enter a feed-forward block, ``[rows, hidden]``, on each GPU that holds them."""
    for gpu in run.gpus_of_layer(layer):
        hidden = gpu.held("hidden")
        run.put(gpu, tensor, hidden.keys, rms_norm(hidden.values, gpu.weights[f"{layer}.norm2"]))


def dense_block(run: Run, layer: int) -> None:
    """``hidden += ffn(norm(hidden))``, split over TP or whole on each holder."""
    normed_rows(run, layer, "x")
    gated_block(run, layer, Part.FFN, "dense", "x", "part")
    for gpu in run.gpus_of_layer(layer):
        run.add_to_hidden(gpu, "part")
    run.drop(layer, "x", "part")
    run.check_hidden(layer, Part.FFN)


def shared_block(run: Run, layer: int) -> None:
    """The shared expert's outputs, ``shared`` ``[rows, hidden]``: partial sums until :func:`sum_shared`."""
    normed_rows(run, layer, "x_shared")
    run_gated(run, layer, Part.SHARED, "shared", "x_shared", "shared")


def sum_shared(run: Run, layer: int) -> None:
    """Sum the shared expert's outputs over TP where it is sliced, and gate them."""
    run.hop(layer, Part.SHARED, SUMS, "shared")
    if run.scenario.model.shared_gate:
        for gpu in run.gpus_of_layer(layer):
            keys = gpu.held("hidden").keys
            gate = sigmoid(gpu.at("x_shared", keys) @ gpu.weights[f"{layer}.shared_gate"])
            run.put(gpu, "shared", keys, gpu.at("shared", keys) * gate)
    run.drop(layer, "x_shared")


def merged_shared(run: Run, gpu: Gpu, layer: int, rows: FloatArray) -> FloatArray:
    """Partial sums of a GPU's slice of the shared expert, ``[rows, hidden]``; 0 where the model has none."""
    if not run.scenario.model.shared_experts:
        return np.zeros(rows.shape)
    slices = [gpu.weights[f"{layer}.shared.{matrix}"] for matrix in ("gate", "up", "down")]
    found = swiglu(rows, *slices)
    if run.scenario.model.shared_gate:
        found = found * sigmoid(rows @ gpu.weights[f"{layer}.shared_gate"])
    return found


def gated_block(run: Run, layer: int, part: Part, name: str, source: str, result: str) -> None:
    """One gated block on each GPU's slice of it, gathered before and summed after as the plan says."""
    run_gated(run, layer, part, name, source, result)
    run.hop(layer, part, SUMS, result)


def run_gated(run: Run, layer: int, part: Part, name: str, source: str, result: str) -> None:
    """Gather rows where the plan says so, and run each GPU's slice on them."""
    run.hop(layer, part, (HopKind.ALL_GATHER,), source)
    for gpu in run.gpus_of_layer(layer):
        rows = gpu.rows[source]
        matrices = [gpu.weights[f"{layer}.{name}.{matrix}"] for matrix in ("gate", "up", "down")]
        run.put(gpu, result, rows.keys, swiglu(rows.values, *matrices))

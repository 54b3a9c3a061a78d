"""Feed-forward blocks that every token passes: dense layers, and shared experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.hop import HopKind, Part
from tracer.replay.maths import rms_norm, swiglu
from tracer.replay.run import SUMS
from tracer.routers import sigmoid

if TYPE_CHECKING:
    from tracer.replay.run import Run


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
    run.checks.hidden(run, layer, Part.FFN)


def shared_block(run: Run, layer: int) -> None:
    """The shared expert's outputs, ``shared`` ``[rows, hidden]``."""
    normed_rows(run, layer, "x_shared")
    gated_block(run, layer, Part.SHARED, "shared", "x_shared", "shared")
    if run.scenario.need_model().shared_gate:
        for gpu in run.gpus_of_layer(layer):
            keys = gpu.held("hidden").keys
            gate = sigmoid(gpu.at("x_shared", keys) @ gpu.weights[f"{layer}.shared_gate"])
            run.put(gpu, "shared", keys, gpu.at("shared", keys) * gate)
    run.drop(layer, "x_shared")


def gated_block(run: Run, layer: int, part: Part, name: str, source: str, result: str) -> None:
    """One gated block on each GPU's slice of it, gathered before and summed after as the plan says."""
    run.hop(layer, part, (HopKind.ALL_GATHER,), source)
    for gpu in run.gpus_of_layer(layer):
        rows = gpu.rows[source]
        matrices = [gpu.weights[f"{layer}.{name}.{matrix}"] for matrix in ("gate", "up", "down")]
        run.put(gpu, result, rows.keys, swiglu(rows.values, *matrices))
    run.hop(layer, part, SUMS, result)

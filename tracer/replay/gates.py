"""The router on the mesh: every GPU that holds a row scores it and picks its experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.replay.faults import Fault
from tracer.routers import Router, choice_scores, route, scaled, weigh

if TYPE_CHECKING:
    from tracer.replay.arrays import FloatArray, IntArray
    from tracer.replay.machine import Gpu
    from tracer.replay.run import Run


@dataclass(frozen=True, slots=True)
class Gates:
    """Picks of some rows on one GPU: ``keys`` ``[rows]``, ``experts`` and ``weights`` ``[rows, top_k]``."""

    keys: IntArray
    experts: IntArray
    weights: FloatArray


def gate(run: Run, gpu: Gpu, layer: int, keys: IntArray) -> Gates:
    """Route rows of ``x`` that the GPU holds; given picks stand, weighted by the router's scores."""
    router = Router.of(run.scenario.need_model())
    logits = gpu.at("x", keys) @ gpu.weights[f"{layer}.router"]
    bias = gpu.weights.get(f"{layer}.router_bias")
    experts, weights = route(router, logits, bias)
    experts = _with_given(run, layer, keys, experts)
    weights = weigh(router, logits, experts)
    if run.fault is Fault.BIAS_IN_WEIGHTS:
        picked = np.take_along_axis(choice_scores(router, logits, bias), experts, axis=1)
        weights = scaled(router, picked)
    gates = Gates(keys, experts, weights)
    run.checks.gates(run, gpu, layer, gates)
    if run.watch is not None:
        run.watch.router(layer, gpu.rank, logits, choice_scores(router, logits, bias), gates)
    rows = run.batch.rows_of(keys).tolist()
    run.picks.setdefault(layer, {}).update(zip(rows, map(tuple, experts.tolist()), strict=True))
    return gates


def _with_given(run: Run, layer: int, keys: IntArray, experts: IntArray) -> IntArray:
    """The router's experts, but the scenario's picks for the token that it follows."""
    given = dict(run.scenario.picks).get(layer)
    followed = run.batch.id_of(run.scenario.replica, run.scenario.position)
    if given is None:
        return experts
    return np.where((keys == followed)[:, None], np.array(given), experts)

"""The router on the mesh: which GPUs run a row's MoE block, how each scores the row and picks its experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.mesh.axes import Axis
from tracer.model.routers import Router, choice_scores, route, scaled, sigmoid, weigh
from tracer.proof.replay.faults import Fault
from tracer.proof.replay.layer.rows import Gates
from tracer.trip.hops.moves import moe_sources, tp_ranks

if TYPE_CHECKING:
    from tracer.proof.replay.layer.maths import IntArray
    from tracer.proof.replay.machine import Gpu
    from tracer.proof.replay.run import Run


def gate(run: Run, gpu: Gpu, layer: int, keys: IntArray) -> Gates:
    """Route rows of ``x`` that the GPU holds; given picks stand, weighted by the router's scores.

    Shared experts come after the router's, where they are routed too.
    """
    router = Router.of(run.scenario.model)
    logits = gpu.at("x", keys) @ gpu.weights[f"{layer}.router"]
    bias = gpu.weights.get(f"{layer}.router_bias")
    experts, weights = route(router, logits, bias)
    experts = _with_given(run, layer, keys, experts)
    weights = weigh(router, logits, experts)
    if run.fault is Fault.BIAS_IN_WEIGHTS:
        picked = np.take_along_axis(choice_scores(router, logits, bias), experts, axis=1)
        weights = scaled(router, picked)
    gates = Gates(keys, experts, weights)
    run.checks.gates(run.batch, gpu, layer, gates)
    if run.watch is not None:
        run.watch.router(layer, gpu.rank, logits, choice_scores(router, logits, bias), gates)
    rows = run.batch.rows_of(keys).tolist()
    run.picks.setdefault(layer, {}).update(zip(rows, map(tuple, experts.tolist()), strict=True))
    return _with_shared(run, gpu, layer, gates)


def _with_shared(run: Run, gpu: Gpu, layer: int, gates: Gates) -> Gates:
    """With the experts that every token picks, where shared ones are routed too: weight 1, or their gate."""
    always = run.scenario.always_picked
    if not always:
        return gates
    weight = np.ones((len(gates.keys), 1))
    if run.scenario.model.shared_gate:
        weight = sigmoid(gpu.at("x", gates.keys) @ gpu.weights[f"{layer}.shared_gate"])
    shared = np.tile(np.array(always), (len(gates.keys), 1))
    experts = np.concatenate((gates.experts, shared), axis=1)
    return Gates(gates.keys, experts, np.concatenate((gates.weights, np.tile(weight, len(always))), axis=1))


def _with_given(run: Run, layer: int, keys: IntArray, experts: IntArray) -> IntArray:
    """The router's experts, but the scenario's picks for the token that it follows."""
    given = dict(run.scenario.picks).get(layer)
    followed = run.batch.id_of(run.scenario.replica, run.scenario.position)
    if given is None:
        return experts
    return np.where((keys == followed)[:, None], np.array(given), experts)


def sources_of(run: Run, home: int) -> list[int]:
    """Ranks that route and dispatch a row, by its home; all of the TP group under the named fault."""
    if run.fault is Fault.DISPATCH_TWICE:
        return tp_ranks(run.scenario, home)
    return moe_sources(run.scenario, home)


def source_rows(run: Run, gpu: Gpu) -> IntArray:
    """Ids of the rows whose MoE block a GPU runs, ascending."""
    keys, mesh = gpu.held("x").keys, run.scenario.mesh
    homes = run.batch.home[run.batch.rows_of(keys)]
    first = mesh.moved(gpu.rank, Axis.PP, 0)
    runs_here = [home for home in np.unique(homes).tolist() if first in sources_of(run, home)]
    return keys[np.isin(homes, runs_here)]

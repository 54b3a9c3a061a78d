"""The weights a GPU holds, matrix by matrix.

Column-parallel matrices (q, k, v, gate, up, and the up-projections of MLA's latents) are cut by rows,
row-parallel ones (o, down) by columns, over TP, as Megatron, vLLM and SGLang do; MLA's down-projections,
routers and norms are whole on every rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracer.held_experts import held_experts
from tracer.held_vocabulary import held_vocabulary
from tracer.holding import Holding, hold, stage_copies
from tracer.weight_matrices import Part, WeightMatrix, weight_matrices

if TYPE_CHECKING:
    from tracer.model_share import ModelShare
    from tracer.scenario import Scenario

_CUT_BY_COLUMNS = ("o", "down")
_CUT_BY_HEADS = ("q", "q_b", "kv_b", "o")


def held_weights(scenario: Scenario, share: ModelShare) -> tuple[Holding, ...]:
    """Everything of the model that lies on a GPU, by part in the model's order.

    Raises:
        ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
    """
    found: list[Holding] = []
    for matrix in weight_matrices(scenario.need_model()):
        found += _HOLDERS.get(matrix.part, _whole)(scenario, share, matrix)
    order = list(Part)
    return tuple(sorted((each for each in found if each.count), key=lambda each: order.index(each.part)))


def _attention(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> Iterator[Holding]:
    """Heads are cut over TP; the projections into latents are whole on each TP rank."""
    tp = scenario.mesh.size_of("tp")
    rows, columns = matrix.rows, matrix.columns
    if matrix.name in _CUT_BY_HEADS:
        shared = stage_copies(scenario, f"heads over tp {tp}", 1)
        rows, columns = (rows, columns // tp) if matrix.name in _CUT_BY_COLUMNS else (rows // tp, columns)
    elif share.kv_heads is not None:
        few = ", which are more than KV heads" if share.kv_replicas > 1 else ""
        shared = stage_copies(scenario, f"KV heads over tp {tp}{few}", share.kv_replicas)
        rows = rows * share.kv_replicas // tp
    else:
        shared = stage_copies(scenario, "the projection into the latent is whole", tp)
    yield hold(scenario, matrix.part, matrix.name, (rows, columns), share.layers.count, shared)


def _dense(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> Iterator[Holding]:
    yield from _ffn(scenario, matrix, share.dense_hidden, share.layers.dense, scenario.dense_tp)


def _shared(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> Iterator[Holding]:
    parts = scenario.mesh.size_of("tp") if scenario.plan.shared_tp else 1
    yield from _ffn(scenario, matrix, share.shared_hidden, share.layers.moe, parts)


def _ffn(
    scenario: Scenario, matrix: WeightMatrix, inner: range | None, layers: int, parts: int
) -> Iterator[Holding]:
    """A matrix of a gated FFN whose inner width is cut over ``parts`` TP ranks."""
    if inner:
        tp = scenario.mesh.size_of("tp")
        reason = f"inner width over tp {tp}" if parts > 1 else "whole"
        width = len(inner)
        shape = (matrix.rows, width) if matrix.name in _CUT_BY_COLUMNS else (width, matrix.columns)
        yield hold(
            scenario, matrix.part, matrix.name, shape, layers, stage_copies(scenario, reason, tp // parts)
        )


def _whole(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> Iterator[Holding]:
    """Routers and norms."""
    layers = share.layers
    counts = {
        "router": layers.moe,
        "shared_gate": layers.moe,
        "latent_norm": layers.count,
        "norm": 2 * layers.count + layers.is_last_stage,
    }
    shared = stage_copies(scenario, "whole", scenario.mesh.size_of("tp"))
    yield hold(scenario, matrix.part, matrix.name, (matrix.rows, matrix.columns), counts[matrix.name], shared)


_HOLDERS = {
    Part.EMBEDDING: held_vocabulary,
    Part.LM_HEAD: held_vocabulary,
    Part.ATTENTION: _attention,
    Part.DENSE: _dense,
    Part.SHARED: _shared,
    Part.EXPERTS: held_experts,
}

"""What one GPU of a scenario computes in a layer: its share of a pass, as operators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracer.model.weight_format import WeightFormat
from tracer.model.weights import WeightPart
from tracer.scenario.plan import Contract, Sp
from tracer.scenario.step import tokens_per_replica
from tracer.timing.kind_work import KindWork, feed_operators, mixer_operators
from tracer.timing.operators import (
    ExpertLoad,
    Operator,
    attention_operators,
    expert_load,
    expert_operator,
    ffn_operator,
    has_dense_ffn,
)
from tracer.traffic.moe import dispatched_rows

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.timing.batch import TimedBatch


@dataclass(frozen=True, slots=True)
class LayerWork:
    """Operators of one GPU: attention of any layer, shared and routed experts, the FFN of a dense layer.

    Where layers are not alike ``attention`` and ``dense`` are empty, and ``kinds`` has those of each kind.
    """

    attention: tuple[Operator, ...]
    shared: tuple[Operator, ...]
    experts: tuple[Operator, ...]
    dense: tuple[Operator, ...]
    kinds: tuple[KindWork, ...] = ()


def layer_work(scenario: Scenario, batch: TimedBatch, parts: int = 1) -> LayerWork:
    """Work on one of ``parts`` equal parts of ``batch``; ``scenario``'s pass has the part's rows.

    CP ranks share a replica's rows, TP ranks heads and (with SP) the rows outside attention. All replicas
    have as much.

    Raises:
        ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
    """
    model, mesh = scenario.model, scenario.mesh
    tp, cp, unstated = mesh.tp, mesh.cp, WeightFormat(scenario.dtype.weights)
    if model.layer_kinds:
        return _by_kind(scenario, batch, parts, unstated)
    attention = tuple(_cut(each, cp * parts) for each in attention_operators(model, batch, tp, unstated))
    rows = dispatched_rows(scenario, tokens_per_replica(scenario))
    dense: tuple[Operator, ...] = ()
    if has_dense_ffn(model):
        split = scenario.dense_tp
        own = batch.tokens / (parts * cp * (tp // split))
        dense = (ffn_operator(model, WeightPart.DENSE, own, split, unstated),)
    return LayerWork(attention, _shared(scenario, rows, unstated), _experts(scenario, rows, unstated), dense)


def _by_kind(scenario: Scenario, batch: TimedBatch, parts: int, unstated: WeightFormat) -> LayerWork:
    """The work of layers that are not alike, kind by kind."""
    model, mesh = scenario.model, scenario.mesh
    rows, own = dispatched_rows(scenario, tokens_per_replica(scenario)), dense_rows(scenario, batch, parts)
    kinds = []
    for kind, layers in model.kinds("count the FLOPs of a layer"):
        mixer = mixer_operators(model, kind, batch, mesh.tp, unstated)
        feed = feed_operators(model, kind, own, scenario.dense_tp, rows, unstated)
        kinds.append(KindWork(kind, layers, tuple(_cut(each, mesh.cp * parts) for each in mixer), feed))
    shared, experts = _shared(scenario, rows, unstated), _experts(scenario, rows, unstated)
    return LayerWork((), shared, experts, (), tuple(kinds))


def dense_rows(scenario: Scenario, batch: TimedBatch, parts: int) -> float:
    """Rows that one GPU runs its part of a dense FFN on."""
    return batch.tokens / (parts * scenario.mesh.cp * (scenario.mesh.tp // scenario.dense_tp))


def _cut(operator: Operator, parts: int) -> Operator:
    """A part of an operator's rows; weights are whole in each."""
    return replace(operator, flops=operator.flops / parts, row_bytes=operator.row_bytes / parts)


def _shared(scenario: Scenario, rows: float, unstated: WeightFormat) -> tuple[Operator, ...]:
    """The shared expert, unless the model has none or routes it like the others."""
    model = scenario.model
    if not (model.moe_layers and model.shared_experts) or scenario.always_picked:
        return ()
    split = scenario.mesh.tp if scenario.plan.slices_shared else 1
    return (ffn_operator(model, WeightPart.SHARED, shared_rows(scenario, rows), split, unstated),)


def shared_rows(scenario: Scenario, rows: float) -> float:
    """Rows that one GPU runs its part of a shared expert on, of ``rows`` that it dispatches.

    A slice runs on all rows of the TP group, which without SP each of its ranks has anyway.
    """
    gathers = scenario.plan.slices_shared and scenario.plan.sp is not Sp.OFF
    return rows * scenario.mesh.tp if gathers else rows


def _experts(scenario: Scenario, rows: float, unstated: WeightFormat) -> tuple[Operator, ...]:
    """The routed experts of one rank, sliced over etp."""
    model, etp = scenario.model, scenario.mesh.etp
    if not model.moe_layers:
        return ()
    whole = expert_operator(model, _load(scenario, rows), unstated)
    return (replace(whole, flops=whole.flops / etp, weight_bytes=whole.weight_bytes / etp),)


def _load(scenario: Scenario, rows: float) -> ExpertLoad:
    """Experts and pairs of a rank: its share of the group's rows; with DWDP its own rows, all experts.

    A shared expert that is routed adds one pick per row, on average over the ranks.
    """
    model, mesh = scenario.model, scenario.mesh
    if scenario.plan.contract is Contract.DWDP:
        return expert_load(model, rows)
    ep = mesh.ep
    group = rows * ep * mesh.etp
    load = expert_load(model, group, 1 / ep)
    always = len(scenario.always_picked)
    return replace(load, hit=load.hit + always / ep, pairs=load.pairs + group * always / ep)

"""What gathering sharded weights is expected to move: every rank gets the pieces that it does not keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tracer.memory.shard_units import UnitKind, shard_unit
from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES
from tracer.scenario.plan import Contract
from tracer.scenario.sharding import shard_sizes
from tracer.traffic.line import AxisTraffic, crossing_share, layers_by_stage, runs_of, shared_line
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

ENDS = "weight_gather_ends"


def gather_lines(scenario: Scenario) -> list[AxisTraffic]:
    """A layer's gathers, on average over the layers, and once a pass those of the embedding and the head.

    Figures are of a stage's first rank, whose slices are the largest; none where weights are whole.
    """
    sizes, model, mesh = shard_sizes(scenario.plan, scenario.mesh), scenario.model, scenario.mesh
    if sizes.whole:
        return []
    every, moe = layers_by_stage(scenario), layers_by_stage(scenario, model.is_moe)
    dense = expert = 0
    for stage in range(mesh.stages):
        rank = mesh.rank_in_stage(stage, 0)
        for layer in scenario.layers_of(stage):
            dense += shard_unit(scenario, rank, UnitKind.LAYER, layer).gathered_bytes
            expert += (
                shard_unit(scenario, rank, UnitKind.EXPERTS, layer).gathered_bytes
                if model.is_moe(layer)
                else 0
            )
    first, last = mesh.rank_in_stage(0, 0), mesh.rank_in_stage(scenario.head_stage, 0)
    ends = [
        shard_unit(scenario, first, UnitKind.EMBEDDING).gathered_bytes,
        shard_unit(scenario, last, UnitKind.HEAD).gathered_bytes,
    ]
    share = _dense_share(scenario, every)
    expert_share = _expert_share(scenario, moe) if expert else 0.0
    over_ib = dense * share + expert * expert_share
    each = (dense + expert) / model.layers
    mixed = over_ib / (dense + expert) if dense + expert else 0.0
    formula = "(shards-1)/shards·(weights of a layer)"
    return [
        _line(scenario, str(HopKind.WEIGHT_GATHER), each, mixed, formula, model.layers, "layer"),
        _line(scenario, ENDS, sum(ends), share, "(shards-1)/shards·(embedding, norm, head)", 1, "pass"),
    ]


def _line(
    scenario: Scenario, part: str, size: float, share: float, formula: str, times: int, per: str
) -> AxisTraffic:
    sizes, element = shard_sizes(scenario.plan, scenario.mesh), BYTES[scenario.dtype.weights]
    return shared_line(
        scenario.cluster,
        "dp",
        part,
        elements=size / element,
        size=size,
        ib_share=share,
        formula=formula,
        numbers=f"{sizes.dense} shards" + (f", experts {sizes.experts}" if scenario.model.experts else ""),
        times=times,
        per=per,
    )


def _dense_share(scenario: Scenario, layers: list[int]) -> float:
    """Share of dense weights' pieces that cross; shard groups are neighbours over (cp, dp), cp fastest."""
    mesh, size = scenario.mesh, shard_sizes(scenario.plan, scenario.mesh).dense

    def cut(ranks: tuple[int, ...]) -> Iterator[Sequence[int]]:
        """Shard groups of the ranks that have one TP slice."""
        at = mesh.dense.coordinate
        return runs_of(sorted(ranks, key=lambda rank: (at(rank, Axis.DP), at(rank, Axis.CP))), size)

    return crossing_share(scenario, (Axis.CP, Axis.DP), layers, cut=cut)


def _expert_share(scenario: Scenario, layers: list[int]) -> float:
    """The same for routed experts; shard groups are neighbours over edp."""
    if scenario.plan.contract is Contract.TP:
        return _dense_share(scenario, layers)
    size = shard_sizes(scenario.plan, scenario.mesh).experts
    return crossing_share(scenario, (Axis.EDP,), layers, cut=lambda ranks: runs_of(ranks, size))

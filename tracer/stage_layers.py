"""The layers of a pipeline stage: how many are dense, how many have experts, and where those are placed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.expert_placement import Placement
    from tracer.model_spec import ModelSpec
    from tracer.scenario import Scenario


@dataclass(frozen=True, slots=True)
class StageLayers:
    """Layers ``first`` to ``last`` (from 1), counted by kind.

    ``own`` are the MoE layers that have a slot table of their own; ``common`` is the placement of the
    others, None where there are none.
    """

    stage: int
    first: int
    last: int
    dense: int
    moe: int
    common: Placement | None
    own: tuple[tuple[int, Placement], ...]
    is_last_stage: bool

    @property
    def count(self) -> int:
        """Number of layers."""
        return self.last - self.first + 1

    @property
    def placements(self) -> tuple[tuple[Placement, int], ...]:
        """(placement, number of MoE layers so placed), the common one first."""
        common = () if self.common is None else ((self.common, self.moe - len(self.own)),)
        return common + tuple((placement, 1) for _, placement in self.own)

    @property
    def content(self) -> tuple[object, ...]:
        """What decides the weights of a stage: stages with equal content hold alike."""
        return (
            self.dense,
            self.moe,
            tuple((layer - self.first, placement) for layer, placement in self.own),
            self.stage == 0,
            self.is_last_stage,
        )


def all_stages(scenario: Scenario) -> Iterator[StageLayers]:
    """Every stage's layers, stage 0 first.

    Raises:
        ConfigError: when the scenario has no model.
    """
    scenario.need_model()
    done = 0
    for stage, count in enumerate(scenario.stage_layers):
        yield _stage(scenario, stage, done + 1, done + count)
        done += count


def layers_of_stage(scenario: Scenario, stage: int) -> StageLayers:
    """One stage's layers.

    Raises:
        ConfigError: when the scenario has no model.
    """
    scenario.need_model()
    done = sum(scenario.stage_layers[:stage])
    return _stage(scenario, stage, done + 1, done + scenario.stage_layers[stage])


def _stage(scenario: Scenario, stage: int, first: int, last: int) -> StageLayers:
    model = scenario.need_model()
    dense = _dense_between(model, first, last)
    moe = last - first + 1 - dense
    own = tuple(
        (layer, placement)
        for layer, placement in scenario.layer_placements
        if first <= layer <= last and model.is_moe(layer)
    )
    common = scenario.placement if moe > len(own) else None
    return StageLayers(stage, first, last, dense, moe, common, own, stage == scenario.mesh.stages - 1)


def _dense_between(model: ModelSpec, first: int, last: int) -> int:
    """Layers from ``first`` to ``last`` without experts; the same cost for any depth."""
    if model.experts is None:
        return last - first + 1
    dense = model.dense_layers
    if isinstance(dense, int):
        return max(0, min(last, dense) - first + 1)
    return bisect_right(dense, last) - bisect_left(dense, first)

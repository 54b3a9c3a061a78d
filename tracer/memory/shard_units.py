"""Weights in equal pieces over a shard group (FSDP, HSDP, ZeRO-3): units, groups, what is gathered at once.

A unit is what a framework wraps: the embedding, a layer without its routed experts, the experts of a layer,
and the last norm with the LM head. A rank keeps one piece of each unit that it runs, and gathers the others'
pieces before it runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from tracer.memory.share import StageLayers, model_share, no_layer, one_layer
from tracer.memory.weights import is_expert_weight, whole_weights
from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES
from tracer.scenario.plan import Contract
from tracer.scenario.sharding import shard_sizes

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


class UnitKind(StrEnum):
    """What is gathered at once."""

    EMBEDDING = "embedding"
    LAYER = "layer"
    EXPERTS = "experts"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class ShardUnit:
    """One unit of one rank: the ranks that keep its pieces (its own among them), and its whole bytes.

    Pieces are equal, of whole elements of ``element_bytes``: the last one is padded.
    """

    kind: UnitKind
    group: tuple[int, ...]
    bytes: int
    element_bytes: int

    @property
    def piece_bytes(self) -> int:
        """Bytes of one rank's piece."""
        return -(-self.bytes // (len(self.group) * self.element_bytes)) * self.element_bytes

    @property
    def gathered_bytes(self) -> int:
        """Bytes that a rank receives before it runs the unit."""
        return (len(self.group) - 1) * self.piece_bytes


def shard_unit(scenario: Scenario, rank: int, kind: UnitKind, layer: int = 0) -> ShardUnit:
    """A unit of the weights that a rank runs; ``layer`` counts from 1, for units of a layer.

    Raises:
        ConfigError: for a size that the model does not state.
    """
    experts = kind is UnitKind.EXPERTS
    held = whole_weights(scenario, model_share(scenario, rank, _layers_of(scenario, kind, layer)))
    size = sum(
        each.bytes
        for each in held
        if kind in (UnitKind.EMBEDDING, UnitKind.HEAD) or is_expert_weight(scenario, each.part) is experts
    )
    group = tuple(shard_group(scenario, rank, experts=experts))
    return ShardUnit(kind, group, size, BYTES[scenario.dtype.weights])


def _layers_of(scenario: Scenario, kind: UnitKind, layer: int) -> StageLayers:
    """Layers that hold nothing but the unit's."""
    if kind in (UnitKind.EMBEDDING, UnitKind.HEAD):
        return no_layer(has_head=kind is UnitKind.HEAD)
    return one_layer(scenario, layer)


def shard_group(scenario: Scenario, rank: int, *, experts: bool = False) -> list[int]:
    """Ranks that keep the pieces of a rank's units, in the order of their pieces.

    They share its tp and pp and lie next to each other over (cp, dp), cp fastest; those of routed experts
    share etp, ep and pp, over edp.
    """
    mesh = scenario.mesh
    if not experts or scenario.plan.contract is Contract.TP:
        size = shard_sizes(scenario.plan, mesh).dense
        at = mesh.dense.coordinate(rank, Axis.DP) * mesh.cp + mesh.dense.coordinate(rank, Axis.CP)
        first = at // size * size
        places = (divmod(place, mesh.cp) for place in range(first, first + size))
        return [mesh.moved(mesh.moved(rank, Axis.DP, dp), Axis.CP, cp) for dp, cp in places]
    size = shard_sizes(scenario.plan, mesh).experts
    etp, ep, edp = (mesh.expert_coordinate(rank, axis) for axis in ("etp", "ep", "edp"))
    first, stage = edp // size * size, mesh.stage_of(rank)
    return [mesh.expert_rank(stage, etp=etp, ep=ep, edp=place) for place in range(first, first + size)]


def gather_bytes(scenario: Scenario, rank: int, layers: StageLayers) -> int:
    """Most bytes of gathered units on a rank at once: the unit that runs, and the one gathered ahead of it.

    FSDP2 gathers the next unit while one runs (``weight_prefetch``); where units are kept for backward, all
    of them stay.
    """
    if shard_sizes(scenario.plan, scenario.mesh).whole:
        return 0
    sizes = list(_unit_sizes(scenario, rank, layers))
    if scenario.plan.weight_keep:
        return sum(sizes)
    if not scenario.plan.weight_prefetch:
        return max(sizes, default=0)
    return max((one + two for one, two in pairwise(sizes)), default=sum(sizes))


def _unit_sizes(scenario: Scenario, rank: int, layers: StageLayers) -> list[int]:
    """Whole bytes of a stage's units in the order they run, a layer with its experts."""
    known: dict[tuple[object, int], int] = {}
    found = [shard_unit(scenario, rank, UnitKind.EMBEDDING).bytes] if layers.stage == 0 else []
    for layer in (layer for run in layers.runs for layer in run):
        moe = scenario.model.is_moe(layer)
        key = (
            scenario.model.layer_kinds[layer - 1] if scenario.model.layer_kinds else moe,
            id(scenario.placement_of(layer)) if moe else 0,
        )
        if key not in known:
            known[key] = sum(
                unit.bytes if len(unit.group) > 1 else 0
                for unit in (
                    shard_unit(scenario, rank, kind, layer) for kind in (UnitKind.LAYER, UnitKind.EXPERTS)
                )
            )
        found.append(known[key])
    return [*found, *([shard_unit(scenario, rank, UnitKind.HEAD).bytes] if layers.has_head else [])]

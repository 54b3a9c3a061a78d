"""The experts in a GPU's slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracer.holding import Holding, copies, hold
from tracer.plan import Contract
from tracer.weight_matrices import Part, WeightMatrix

if TYPE_CHECKING:
    from tracer.expert_placement import Placement
    from tracer.model_share import ModelShare
    from tracer.scenario import Scenario


def held_experts(scenario: Scenario, share: ModelShare, matrix: WeightMatrix) -> Iterator[Holding]:
    """One holding for each number of slots that an expert has in the group; shared ones apart.

    Every EP group (edp) has all slots; a slot has an etp-th of its expert. A shared expert that is routed
    is stored as routed ones are.
    """
    if not share.expert_hidden:
        return
    counts: Counter[tuple[Part, int]] = Counter()
    for placement, layers in share.layers.placements:
        for kind, held in _by_slots(scenario, share, placement).items():
            counts[kind] += layers * held
    axis = "tp" if scenario.plan.contract == Contract.TP else "etp"
    parts, edp = scenario.mesh.size_of(axis), scenario.mesh.size_of("edp")
    reason = f"inner width over {axis} {parts}" if parts > 1 else "whole in a slot"
    width = len(share.expert_hidden)
    shape = (matrix.rows, width) if matrix.name == "down" else (width, matrix.columns)
    for (part, slots), count in sorted(counts.items()):
        shared = copies(reason, ("slots", slots), ("edp", edp))
        yield hold(scenario, part, matrix.name, shape, count, shared, stored_as=Part.EXPERTS)


def _by_slots(scenario: Scenario, share: ModelShare, placement: Placement) -> Counter[tuple[Part, int]]:
    """(part, slots an expert has) -> slots on this GPU."""
    routed = scenario.always_picked.start
    if placement.slots is not None:
        return Counter(
            (Part.EXPERTS if expert < routed else Part.SHARED, len(placement.ep_ranks_of(expert)))
            for expert in placement.experts_on(share.ep_rank)
        )
    shared = sum(share.ep_rank in placement.ep_ranks_of(expert) for expert in scenario.always_picked)
    return Counter({(Part.EXPERTS, 1): placement.slots_on(share.ep_rank) - shared, (Part.SHARED, 1): shared})

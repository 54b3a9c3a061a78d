"""DWDP's staging buffers: where pulled experts lie while a layer uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.hops.weight_pull import expert_bytes
from tracer.plan import Contract

if TYPE_CHECKING:
    from tracer.expert_placement import Placement
    from tracer.scenario import Scenario
    from tracer.stage_layers import StageLayers

BUFFERS = 2


def staging_bytes(scenario: Scenario, layers: StageLayers) -> int:
    """Bytes of the two ping-pong buffers, each as large as the most experts that a layer pulls.

    Every rank of a group has buffers of one size, that of the rank with the fewest experts of its own
    (SGLang ``srt/layers/moe/dwdp``: experts a peer sends are one number for the whole group). 0 for other
    contracts, for a group of one rank and for a stage without experts; one MoE layer needs one buffer.
    """
    mesh = scenario.mesh
    etp = mesh.size_of("etp")
    if scenario.plan.contract != Contract.DWDP or mesh.size_of("ep") * etp == 1 or not layers.moe:
        return 0
    whole = expert_bytes(scenario)
    most = max(
        placement.experts * whole - fewest_experts(placement) * (whole // etp)
        for placement, _ in layers.placements
    )
    return min(BUFFERS, layers.moe) * most


def fewest_experts(placement: Placement) -> int:
    """Distinct experts of the EP rank that has the fewest."""
    if placement.slots is not None:
        return min(len(set(placement.experts_of(rank))) for rank in range(placement.ep))
    return placement.experts // placement.ep

"""Reduce-scatter over the TP group: partial rows become one whole row, at home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.hop import Hop, HopKind, Role, Where
from tracer.hops.moves import gather_sum, make_hop, row_bytes

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def reduce_scatter(scenario: Scenario, where: Where) -> Hop:
    """Each TP peer's partial row ``[hidden]`` reaches the home rank, which sums."""
    transfers = gather_sum(scenario, where.home, row_bytes(scenario), Role.PARTIAL)
    return make_hop(HopKind.REDUCE_SCATTER, where, transfers)

"""Landing: the load balancer, the CP cut and the SP cut put the token on its home rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.hop import Hop, HopKind, Where
from tracer.hops.moves import make_hop, row_holders

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def land(scenario: Scenario, where: Where) -> Hop:
    """The ranks that hold the token's row from the start: its home, or without SP the whole TP group."""
    return make_hop(HopKind.LAND, where, (), held=tuple(row_holders(scenario, where.home)))

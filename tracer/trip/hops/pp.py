"""The landing on the home rank, and the send to the stage with the next layers.

The load balancer, the CP cut and the SP cut put the token on its home rank; ``pp_send`` moves its row to the
same place of the next stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.trip.hop import Hop, HopKind, Role, Where
from tracer.trip.hops.moves import make_hop, row_bytes, row_holders, send

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def pp_send(scenario: Scenario, where: Where) -> Hop:
    """Every rank that holds the row sends it to its twin in ``where.to_stage`` (without SP, tp copies)."""
    size = row_bytes(scenario)
    transfers = [
        send(scenario, rank, scenario.mesh.moved(rank, Axis.PP, where.to_stage), size, Role.ROW)
        for rank in row_holders(scenario, where.home)
    ]
    return make_hop(HopKind.PP_SEND, where, transfers)


def land(scenario: Scenario, where: Where) -> Hop:
    """The ranks that hold the token's row from the start: its home, or without SP the whole TP group."""
    return make_hop(HopKind.LAND, where, (), held=tuple(row_holders(scenario, where.home)))

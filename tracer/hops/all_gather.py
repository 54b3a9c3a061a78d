"""All-gather over the TP group: attention and split matmuls need every token of the group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.hop import Hop, HopKind, Role, Where
from tracer.hops.moves import make_hop, row_bytes, spread

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def all_gather(scenario: Scenario, where: Where) -> Hop:
    """The home rank's row ``[hidden]`` reaches each TP peer."""
    return make_hop(HopKind.ALL_GATHER, where, spread(scenario, where.home, row_bytes(scenario), Role.ROW))

"""All-reduce over the TP group: without SP every TP rank ends up with the whole row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.hop import Hop, HopKind, Role, Where
from tracer.hops.moves import gather_sum, make_hop, row_bytes, spread

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def all_reduce(scenario: Scenario, where: Where) -> Hop:
    """Partial rows to the rank that SP would make home, then the sum from it to each peer: one comm op."""
    size = row_bytes(scenario)
    partials = gather_sum(scenario, where.home, size, Role.PARTIAL)
    return make_hop(HopKind.ALL_REDUCE, where, partials + spread(scenario, where.home, size, Role.ROW))

"""Tensor parallelism: how a row is gathered, summed and scattered over the TP group, and the split LM head.

With SP, attention and split matmuls need every token of the group (``all_gather``), and partial rows become
one whole row at home (``reduce_scatter``). Without SP every TP rank ends up with the whole row
(``all_reduce``). The LM head is split by vocabulary: the row is copied to its slices (``head_copy``), and the
logits come home (``logits_gather``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.model.dtype import BYTES
from tracer.trip.hop import Hop, HopKind, Role, Where
from tracer.trip.hops.moves import gather_sum, gathered_row_bytes, make_hop, row_bytes, send, spread, tp_ranks

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def all_gather(scenario: Scenario, where: Where) -> Hop:
    """The home rank's row ``[hidden]`` reaches each TP peer."""
    size = gathered_row_bytes(scenario, where.part)
    return make_hop(HopKind.ALL_GATHER, where, spread(scenario, where.home, size, Role.ROW))


def all_reduce(scenario: Scenario, where: Where) -> Hop:
    """Partial rows to the rank that SP would make home, then the sum from it to each peer: one comm op."""
    size = row_bytes(scenario, where.part)
    partials = gather_sum(scenario, where.home, size, Role.PARTIAL)
    return make_hop(HopKind.ALL_REDUCE, where, partials + spread(scenario, where.home, size, Role.ROW))


def head_copy(scenario: Scenario, where: Where) -> Hop:
    """The final row, from the home rank to each TP peer (with SP; without it they hold it already)."""
    size = row_bytes(scenario)
    peers = [rank for rank in tp_ranks(scenario, where.home) if rank != where.home]
    return make_hop(
        HopKind.HEAD_COPY, where, [send(scenario, where.home, peer, size, Role.ROW) for peer in peers]
    )


def logits_gather(scenario: Scenario, where: Where) -> Hop:
    """Each TP peer's ``ceil(vocab / tp)`` logits reach the home rank, which samples."""
    vocab = scenario.model.need("vocab", "size the logits")
    size = -(-vocab // scenario.mesh.tp) * BYTES[scenario.dtype.logits]
    peers = [rank for rank in tp_ranks(scenario, where.home) if rank != where.home]
    return make_hop(
        HopKind.LOGITS_GATHER, where, [send(scenario, peer, where.home, size, Role.LOGITS) for peer in peers]
    )


def reduce_scatter(scenario: Scenario, where: Where) -> Hop:
    """Each TP peer's partial row ``[hidden]`` reaches the home rank, which sums."""
    transfers = gather_sum(scenario, where.home, row_bytes(scenario, where.part), Role.PARTIAL)
    return make_hop(HopKind.REDUCE_SCATTER, where, transfers)

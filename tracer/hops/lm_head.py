"""The LM head, split by vocabulary over the TP group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.dtype import BYTES
from tracer.hop import Hop, HopKind, Role, Where
from tracer.hops.moves import make_hop, row_bytes, send, tp_ranks

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def head_copy(scenario: Scenario, where: Where) -> Hop:
    """The final row, from the home rank to each TP peer (with SP; without it they hold it already)."""
    size = row_bytes(scenario)
    peers = [rank for rank in tp_ranks(scenario, where.home) if rank != where.home]
    return make_hop(
        HopKind.HEAD_COPY, where, [send(scenario, where.home, peer, size, Role.ROW) for peer in peers]
    )


def logits_gather(scenario: Scenario, where: Where) -> Hop:
    """Each TP peer's ``ceil(vocab / tp)`` logits reach the home rank, which samples."""
    vocab = scenario.need_model().need("vocab", "size the logits")
    size = -(-vocab // scenario.mesh.size_of("tp")) * BYTES[scenario.dtype.logits]
    peers = [rank for rank in tp_ranks(scenario, where.home) if rank != where.home]
    return make_hop(
        HopKind.LOGITS_GATHER, where, [send(scenario, peer, where.home, size, Role.LOGITS) for peer in peers]
    )

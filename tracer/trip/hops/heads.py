"""Heads over context parallelism (Ulysses): each CP rank computes some heads of every token of its group.

Before attention the home's query heads, with the K/V heads they need, go to the CP ranks that compute them;
after it their outputs come home. Under hierarchical CP the group is an inner one, and K/V goes round a ring
between such groups (``kv_exchange``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.memory.kv import heads_peers
from tracer.model.dtype import BYTES
from tracer.trip.hop import Hop, HopKind, Role, Where
from tracer.trip.hops.moves import make_hop, send, tp_ranks

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

WHY = "size the heads of a CP rank"


@dataclass(frozen=True, slots=True)
class HeadSlice:
    """Elements of one token that one CP rank computes with: query, K/V and output, of its heads alone."""

    query: int
    kv: int
    output: int


def head_slice(scenario: Scenario) -> HeadSlice:
    """The heads of one CP rank: ``heads / (tp · parts)`` query heads and ``max(1, kv_heads / (tp · parts))``.

    With MLA heads are those after the up-projection, each with a key and a value of its own.
    """
    model, parts = scenario.model, scenario.plan.head_parts(scenario.mesh.cp)
    heads = model.need("heads", WHY) // scenario.mesh.tp // parts
    value = model.need("v_head_dim", WHY)
    if model.mla:
        key = model.qk_head_dim
        return HeadSlice(heads * key, heads * (key + value), heads * value)
    key = model.need("head_dim", WHY)
    kv_heads = max(1, max(1, model.need("kv_heads", WHY) // scenario.mesh.tp) // parts)
    return HeadSlice(heads * key, kv_heads * (key + value), heads * value)


def heads_scatter(scenario: Scenario, where: Where) -> Hop:
    """Each TP rank's query heads, and the K/V heads beside them, reach the CP ranks that compute them."""
    each = head_slice(scenario)
    size = each.query * BYTES[scenario.dtype.activations] + each.kv * BYTES[scenario.dtype.kv]
    transfers = [
        send(scenario, rank, peer, size, Role.QUERY)
        for rank in tp_ranks(scenario, where.home)
        for peer in heads_peers(scenario, rank)
    ]
    return make_hop(HopKind.HEADS_SCATTER, where, transfers)


def heads_gather(scenario: Scenario, where: Where) -> Hop:
    """Those ranks' outputs come home, where the output projection needs all heads of the token."""
    size = head_slice(scenario).output * BYTES[scenario.dtype.activations]
    transfers = [
        send(scenario, peer, rank, size, Role.OUTPUT)
        for rank in tp_ranks(scenario, where.home)
        for peer in heads_peers(scenario, rank)
    ]
    return make_hop(HopKind.HEADS_GATHER, where, transfers)

"""Heads over context parallelism (Ulysses): each CP rank computes some heads of every token of its group.

Before attention the home's query heads, with the K/V heads they need, go to the CP ranks that compute them;
after it their outputs come home. Under hierarchical CP the group is an inner one, and K/V goes round a ring
between such groups (``kv_exchange``). Linear attention and Mamba do the same with what their projections
give (Megatron ``gated_delta_net.py`` and ``mamba_context_parallel.py``), over the whole CP group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tracer.memory.kv import heads_peers
from tracer.model.dtype import BYTES
from tracer.model.layers import AttentionType, HeadAttention, LatentAttention, LinearAttention, Mamba2
from tracer.trip.hop import Hop, HopKind, Role, Where
from tracer.trip.hops.moves import make_hop, send, tp_ranks
from tracer.trip.kinds import head_parts_at, kind_at

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

WHY = "size the heads of a CP rank"


class HeadSlice(NamedTuple):
    """Elements of one token that one CP rank computes with: query, K/V and output, of its heads alone.

    For a mixer with a state ``query`` is all that its projections give, and ``kv`` is 0.
    """

    query: int
    kv: int
    output: int


def head_slice(scenario: Scenario, layer: int) -> HeadSlice:
    """The heads of one CP rank: ``heads / (tp · parts)`` query heads and ``max(1, kv_heads / (tp · parts))``.

    With MLA heads are those after the up-projection, each with a key and a value of its own.
    """
    kind, tp, parts = kind_at(scenario.model, layer), scenario.mesh.tp, head_parts_at(scenario, layer)
    if kind is None:
        return _main_slice(scenario, parts)
    attention = kind.attention
    if isinstance(attention, HeadAttention):
        heads, key, value = attention.heads // tp // parts, attention.head_dim, attention.v_head_dim
        kv_heads = 0 if attention.shared_kv else _kv_heads(attention.kv_heads, tp, parts)
        return HeadSlice(heads * key, kv_heads * (key + value), heads * value)
    if isinstance(attention, LatentAttention):
        heads, key, value = attention.heads // tp // parts, attention.qk_head_dim, attention.v_head_dim
        return HeadSlice(heads * key, heads * (key + value), heads * value)
    if isinstance(attention, LinearAttention):
        return _linear_slice(attention, tp, parts)
    if isinstance(attention, Mamba2):
        return _mamba_slice(attention, tp, parts)
    return HeadSlice(0, 0, 0)


def _main_slice(scenario: Scenario, parts: int) -> HeadSlice:
    """The slice where all layers are alike, from the model's own sizes."""
    model = scenario.model
    heads = model.need("heads", WHY) // scenario.mesh.tp // parts
    value = model.need("v_head_dim", WHY)
    if model.mla:
        key = model.qk_head_dim
        return HeadSlice(heads * key, heads * (key + value), heads * value)
    key = model.need("head_dim", WHY)
    kv_heads = _kv_heads(model.need("kv_heads", WHY), scenario.mesh.tp, parts)
    return HeadSlice(heads * key, kv_heads * (key + value), heads * value)


def _kv_heads(kv_heads: int, tp: int, parts: int) -> int:
    """K/V heads of one CP rank, at least one."""
    return max(1, max(1, kv_heads // tp) // parts)


def _linear_slice(each: LinearAttention, tp: int, parts: int) -> HeadSlice:
    """q, k and v of a CP rank's heads with their decays; a gated delta net's output gate too."""
    heads = each.value_heads // tp // parts
    values = heads * each.value_dim
    if each.type is AttentionType.SHORT_CONV:
        return HeadSlice(3 * values, 0, values)
    rows = 2 * _kv_heads(each.key_heads, tp, parts) * each.key_dim + values
    if each.type is AttentionType.GATED_DELTA_NET:
        rows += values + 2 * heads
    if each.type is AttentionType.KDA:
        rows += values + heads
    return HeadSlice(rows, 0, values)


def _mamba_slice(each: Mamba2, tp: int, parts: int) -> HeadSlice:
    """z, x and dt of a CP rank's heads, and B and C of their groups (Mamba-1 makes these from x)."""
    heads = each.heads // tp // parts
    if each.type is AttentionType.MAMBA:
        return HeadSlice(2 * heads * each.head_dim, 0, heads * each.head_dim)
    inner, groups = heads * each.head_dim, _kv_heads(each.groups, tp, parts)
    return HeadSlice(2 * inner + 2 * groups * each.state + heads, 0, inner)


def heads_scatter(scenario: Scenario, where: Where) -> Hop:
    """Each TP rank's query heads, and the K/V heads beside them, reach the CP ranks that compute them."""
    each, parts = head_slice(scenario, where.layer), head_parts_at(scenario, where.layer)
    size = each.query * BYTES[scenario.dtype.activations] + each.kv * BYTES[scenario.dtype.kv]
    transfers = [
        send(scenario, rank, peer, size, Role.QUERY)
        for rank in tp_ranks(scenario, where.home)
        for peer in heads_peers(scenario, rank, parts)
    ]
    return make_hop(HopKind.HEADS_SCATTER, where, transfers)


def heads_gather(scenario: Scenario, where: Where) -> Hop:
    """Those ranks' outputs come home, where the output projection needs all heads of the token."""
    parts = head_parts_at(scenario, where.layer)
    size = head_slice(scenario, where.layer).output * BYTES[scenario.dtype.activations]
    transfers = [
        send(scenario, peer, rank, size, Role.OUTPUT)
        for rank in tp_ranks(scenario, where.home)
        for peer in heads_peers(scenario, rank, parts)
    ]
    return make_hop(HopKind.HEADS_GATHER, where, transfers)

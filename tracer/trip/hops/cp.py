"""Attention over context parallelism: K/V or the query travels so that both meet.

In prefill queries stay in place, and each rank's keys and values travel to the other CP ranks
(``kv_exchange``). In decode the new token's K/V travels the same way (pass-KV), or the query goes out to the
ranks that keep K/V (``query_send``) and partial outputs come back (``partials_return``): pass-Q.
:func:`attention_way` says which of the two a scenario takes, and why.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tracer.memory.kv import heads_peers, shard_peers
from tracer.memory.kv_bytes import index_bytes, kv_bytes_of_layer
from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES, Dtype
from tracer.model.layers import CompressedAttention
from tracer.scenario.plan import DecodeAttention, KvExchange
from tracer.trip.hop import Hop, HopKind, Role, Transfer, Where
from tracer.trip.hops.heads import head_slice
from tracer.trip.hops.moves import make_hop, send, tp_ranks
from tracer.trip.kinds import kind_at, output_width, query_values, ring_steps

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario


def kv_elements(scenario: Scenario) -> int:
    """Elements of one token's K/V on one TP rank in one layer.

    K and V of max(1, kv_heads/tp) heads; MLA: the whole latent, ``kv_lora_rank + qk_rope_head_dim``.
    """
    model = scenario.model
    if model.mla:
        return model.kv_values_per_token
    heads = max(1, model.need("kv_heads", "size K/V") // scenario.mesh.tp)
    why = "size K/V"
    return heads * (model.need("head_dim", why) + model.need("v_head_dim", why))


def kv_bytes(scenario: Scenario, layer: int, position: int = 0) -> int:
    """Bytes of one token's K/V on one TP rank in a layer, with an indexer's key where it has one.

    The token that completes ``ratio`` tokens of a compressed layer brings their entry too.
    """
    kind, dtype = kind_at(scenario.model, layer), scenario.dtype.kv
    if kind is None:
        return kv_elements(scenario) * BYTES[dtype]
    own, index = kv_bytes_of_layer(kind, dtype, scenario.mesh.tp), index_bytes(kind)
    if isinstance(kind.attention, CompressedAttention):
        completes = kind.attention.ratio and (position + 1) % kind.attention.ratio == 0
        return 2 * own + index if completes else own
    return own + index


def kv_exchange(scenario: Scenario, where: Where) -> Hop:
    """Each TP rank's K/V of the token reaches the other CP ranks with the same tp.

    ``ring`` hands it from cp i to i+1, cp-1 times, whatever causality needs (``ring_steps``: fewer for
    windows, where the framework stops early); ``all_gather`` sends it straight to each (Llama 3). The two
    are equal at cp = 2. ``hierarchical`` hands the heads of each inner
    CP rank round the ranks that have the same place in the other inner groups.
    """
    parts = scenario.plan.head_parts(scenario.mesh.cp)
    if parts > 1:
        size = head_slice(scenario, where.layer).kv * BYTES[scenario.dtype.kv]
    else:
        size = kv_bytes(scenario, where.layer, where.position)
    steps = ring_steps(scenario, where.layer) if parts == 1 else scenario.mesh.cp // parts - 1
    transfers: list[Transfer] = []
    for rank in kv_writers(scenario, where.home):
        lane = scenario.mesh.dense.coordinate(rank, Axis.CP) % parts
        group = list(scenario.mesh.dense.group(rank, Axis.CP))[lane::parts]
        start = group.index(rank)
        ring = group[start:] + group[:start]
        if scenario.plan.kv_exchange is not KvExchange.ALL_GATHER:
            transfers += [send(scenario, a, b, size, Role.KV) for a, b in pairwise(ring[: steps + 1])]
        else:
            transfers += [send(scenario, rank, peer, size, Role.KV) for peer in ring[1:]]
    return make_hop(HopKind.KV_EXCHANGE, where, transfers)


def kv_writers(scenario: Scenario, home: int) -> list[int]:
    """Ranks that have K/V of the token before it is exchanged: the TP group, and who shares its heads."""
    return [
        holder for rank in tp_ranks(scenario, home) for holder in sorted((rank, *heads_peers(scenario, rank)))
    ]


class PassRule(NamedTuple):
    """The published choice between passing queries and passing K/V, with its numbers.

    Queries are smaller when ``new / (new + cached) <= kv_elements / query_elements``; with heads of one
    width the right side is ``2 · kv_heads / heads`` (arXiv 2411.01783, equation for pass-Q: 0.125 for
    Llama 3 405B). What returns, partial outputs, is not in the rule.

    >>> PassRule(new=1, cached=64, kv_elements=2 * 8 * 128, query_elements=128 * 128).way
    <DecodeAttention.PASS_Q: 'pass_q'>
    """

    new: int
    cached: int
    kv_elements: int
    query_elements: int

    @property
    def miss_rate(self) -> float:
        """Share of the context that is new."""
        return self.new / (self.new + self.cached)

    @property
    def threshold(self) -> float:
        """Largest share for which queries are the smaller load."""
        return self.kv_elements / self.query_elements

    @property
    def way(self) -> DecodeAttention:
        """Which of the two travels."""
        return DecodeAttention.PASS_Q if self.miss_rate <= self.threshold else DecodeAttention.PASS_KV

    def __str__(self) -> str:
        sign = "<=" if self.way is DecodeAttention.PASS_Q else ">"
        return (
            f"{self.new} new / {self.new + self.cached:,} in context = {self.miss_rate:.3g} {sign} "
            f"{self.kv_elements:,} K/V / {self.query_elements:,} query elements = {self.threshold:.3g}"
        )


def query_elements_per_token(model: ModelSpec) -> int:
    """Elements of one token's query over all heads; MLA: absorbed into the latent."""
    why = "size a query"
    width = model.kv_values_per_token if model.mla else model.need("head_dim", why)
    return model.need("heads", why) * width


def pass_rule(scenario: Scenario) -> PassRule:
    """The rule for the scenario's token: alone new, all positions before it cached."""
    model = scenario.model
    return PassRule(1, scenario.position, model.kv_values_per_token, query_elements_per_token(model))


def attention_way(scenario: Scenario) -> DecodeAttention:
    """``pass_q`` or ``pass_kv``: as the scenario says, or by the rule when it says ``auto``.

    With dcp > 1 no rank of a TP group has a KV head's whole context, so the query travels whatever it costs.
    """
    said = scenario.plan.decode_attention
    if said is not DecodeAttention.AUTO:
        return said
    return DecodeAttention.PASS_Q if scenario.plan.dcp > 1 else pass_rule(scenario).way


WHY = "size a partial output"


def query_elements(scenario: Scenario, layer: int | None = None) -> int:
    """Elements of one token's query on one TP rank in one layer (None: of the model's main kind).

    ``heads/tp`` query heads; MLA: absorbed into the latent, ``kv_lora_rank + qk_rope_head_dim`` each.
    """
    own = None if layer is None else query_values(scenario.model, layer)
    return (query_elements_per_token(scenario.model) if own is None else own) // scenario.mesh.tp


def partial_shape(scenario: Scenario, layer: int | None = None) -> tuple[int, int]:
    """(heads over all TP ranks, width of a head's output) of a layer (None: of the model's main kind)."""
    model = scenario.model
    own = None if layer is None else output_width(model, layer)
    if own is None:
        own = model.need("heads", WHY), model.need("kv_lora_rank" if model.mla else "v_head_dim", WHY)
    return own


def partial_bytes(scenario: Scenario, layer: int | None = None) -> int:
    """Bytes of the partial result that one rank returns to another: outputs, m and ℓ of its heads.

    An output has the width of a value head (MLA: of the latent without its rotary part) in the
    activations' dtype; the largest score m and the softmax sum ℓ of each head are FP32.
    """
    all_heads, width = partial_shape(scenario, layer)
    heads = all_heads // scenario.mesh.tp
    return heads * (width * BYTES[scenario.dtype.activations] + 2 * BYTES[Dtype.FP32])


def query_send(scenario: Scenario, where: Where) -> Hop:
    """Each TP rank's query heads reach the ranks that keep the other tokens of its KV heads."""
    size = query_elements(scenario, where.layer) * BYTES[scenario.dtype.activations]
    transfers = [
        send(scenario, rank, peer, size, Role.QUERY)
        for rank in tp_ranks(scenario, where.home)
        for peer in shard_peers(scenario, rank)
    ]
    return make_hop(HopKind.QUERY_SEND, where, transfers)


def partials_return(scenario: Scenario, where: Where) -> Hop:
    """Each of those ranks returns its partial output, to be merged where the query came from."""
    size = partial_bytes(scenario, where.layer)
    transfers = [
        send(scenario, peer, rank, size, Role.OUTPUT)
        for rank in tp_ranks(scenario, where.home)
        for peer in shard_peers(scenario, rank)
    ]
    return make_hop(HopKind.PARTIALS_RETURN, where, transfers)

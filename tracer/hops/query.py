"""Decode attention by pass-Q: K/V stays where it is kept, the query goes out and partial outputs return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.decode_attention import query_elements_per_token
from tracer.dtype import BYTES
from tracer.hop import Hop, HopKind, Role, Where
from tracer.hops.moves import make_hop, send, tp_ranks
from tracer.kv_layout import shard_peers

if TYPE_CHECKING:
    from tracer.scenario import Scenario

WHY = "size a partial output"


def query_elements(scenario: Scenario) -> int:
    """Elements of one token's query on one TP rank in one layer.

    ``heads/tp`` query heads; MLA: absorbed into the latent, ``kv_lora_rank + qk_rope_head_dim`` each.
    """
    return query_elements_per_token(scenario.need_model()) // scenario.mesh.size_of("tp")


def partial_bytes(scenario: Scenario) -> int:
    """Bytes of the partial result that one rank returns to another: outputs, m and ℓ of its heads.

    An output has the width of a value head (MLA: of the latent without its rotary part) in the
    activations' dtype; the largest score m and the softmax sum ℓ of each head are FP32.
    """
    model = scenario.need_model()
    heads = model.need("heads", WHY) // scenario.mesh.size_of("tp")
    width = model.need("kv_lora_rank" if model.mla else "v_head_dim", WHY)
    return heads * (width * BYTES[scenario.dtype.activations] + 2 * BYTES["fp32"])


def query_send(scenario: Scenario, where: Where) -> Hop:
    """Each TP rank's query heads reach the ranks that keep the other tokens of its KV heads."""
    size = query_elements(scenario) * BYTES[scenario.dtype.activations]
    transfers = [
        send(scenario, rank, peer, size, Role.QUERY)
        for rank in tp_ranks(scenario, where.home)
        for peer in shard_peers(scenario, rank)
    ]
    return make_hop(HopKind.QUERY_SEND, where, transfers)


def partials_return(scenario: Scenario, where: Where) -> Hop:
    """Each of those ranks returns its partial output, to be merged where the query came from."""
    size = partial_bytes(scenario)
    transfers = [
        send(scenario, peer, rank, size, Role.OUTPUT)
        for rank in tp_ranks(scenario, where.home)
        for peer in shard_peers(scenario, rank)
    ]
    return make_hop(HopKind.PARTIALS_RETURN, where, transfers)

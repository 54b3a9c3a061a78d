"""K/V exchange over the CP group: queries stay in place, keys and values travel."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tracer.dtype import BYTES
from tracer.hop import Hop, HopKind, Role, Transfer, Where
from tracer.hops.moves import make_hop, send, tp_ranks

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def kv_elements(scenario: Scenario) -> int:
    """Elements of one token's K/V on one TP rank in one layer.

    K and V of max(1, kv_heads/tp) heads; MLA: the whole latent, ``kv_lora_rank + qk_rope_head_dim``.
    """
    model = scenario.need_model()
    if model.mla:
        return model.kv_values_per_token
    heads = max(1, model.need("kv_heads", "size K/V") // scenario.mesh.size_of("tp"))
    why = "size K/V"
    return heads * (model.need("head_dim", why) + model.need("v_head_dim", why))


def kv_exchange(scenario: Scenario, where: Where) -> Hop:
    """Each TP rank's K/V of the token reaches the other CP ranks with the same tp.

    ``ring`` hands it from cp i to i+1, cp-1 times, whatever causality needs; ``all_gather`` sends it
    straight to each (Llama 3). The two are equal at cp = 2.
    """
    size = kv_elements(scenario) * BYTES[scenario.dtype.kv]
    transfers: list[Transfer] = []
    for rank in tp_ranks(scenario, where.home):
        group = list(scenario.mesh.dense.group(rank, "cp"))
        start = group.index(rank)
        ring = group[start:] + group[:start]
        if scenario.plan.kv_exchange == "ring":
            transfers += [send(scenario, a, b, size, Role.KV) for a, b in pairwise(ring)]
        else:
            transfers += [send(scenario, rank, peer, size, Role.KV) for peer in ring[1:]]
    return make_hop(HopKind.KV_EXCHANGE, where, transfers)

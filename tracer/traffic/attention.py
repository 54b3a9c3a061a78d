"""What attention is expected to move so that queries and K/V meet, and what the LM head moves in decode.

In prefill K/V travels over cp. In decode the query does (pass-Q): to every rank that keeps other tokens of
its KV heads, over cp and over the DCP group, and partial outputs with m and ℓ come back; or the new
token's K/V travels as in prefill (pass-KV). Counting rules, sections 6 and 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.model.dtype import BYTES
from tracer.scenario.plan import DecodeAttention, KvExchange, Sp
from tracer.traffic.line import (
    AxisTraffic,
    crossing_share,
    layers_by_stage,
    plain_line,
    share_of_groups,
    shared_line,
)
from tracer.trip.hop import HopKind
from tracer.trip.hops.cp import attention_way, kv_elements, partial_bytes, query_elements

if TYPE_CHECKING:
    from tracer.mesh.cluster import Int64s
    from tracer.scenario.scenario import Scenario


def attention_lines(scenario: Scenario, tokens: int) -> list[AxisTraffic]:
    """Lines of axis cp by the scenario's phase; none where every rank has the K/V that it needs."""
    cp, dcp = scenario.mesh.cp, scenario.plan.dcp
    if scenario.decodes and attention_way(scenario) is DecodeAttention.PASS_Q:
        return [_query_line(scenario, tokens), _partials_line(scenario, tokens)] if cp * dcp > 1 else []
    return [_exchange_line(scenario, tokens)] if cp > 1 else []


def _exchange_line(scenario: Scenario, tokens: int) -> AxisTraffic:
    """K/V of T/cp tokens to every other CP rank; MLA: the latent."""
    model, cp = scenario.model, scenario.mesh.cp
    each = kv_elements(scenario)
    formula = "(cp-1)·(T/cp)·(kv_lora+rope)" if model.mla else "(cp-1)·(T/cp)·2·max(1, n_kv/tp)·d_h"
    return plain_line(
        scenario.cluster,
        "cp",
        "attention",
        elements=(cp - 1) * tokens / cp * each,
        element_bytes=BYTES[scenario.dtype.kv],
        ib_share=crossing_share(
            scenario, "cp", layers_by_stage(scenario), ring=scenario.plan.kv_exchange is KvExchange.RING
        ),
        formula=formula,
        numbers=f"{cp - 1}·({tokens}/{cp})·{each}",
        times=model.layers,
    )


def _query_line(scenario: Scenario, tokens: int) -> AxisTraffic:
    """Queries of T/cp requests, each TP rank's heads, to every rank that keeps a shard of their context."""
    model, cp = scenario.model, scenario.mesh.cp
    peers, formula = _peers(scenario)
    each = query_elements(scenario)
    width = "(kv_lora+rope)" if model.mla else "d_h"
    return plain_line(
        scenario.cluster,
        "cp",
        str(HopKind.QUERY_SEND),
        elements=peers * tokens / cp * each,
        element_bytes=BYTES[scenario.dtype.activations],
        ib_share=_shard_share(scenario),
        formula=f"{formula}·(T/cp)·(n_h/tp)·{width}",
        numbers=f"{peers}·({tokens}/{cp})·{each}",
        times=model.layers,
    )


def _partials_line(scenario: Scenario, tokens: int) -> AxisTraffic:
    """One partial output a query sent, with m and ℓ of each head, back to where it came from."""
    model, cp = scenario.model, scenario.mesh.cp
    peers, formula = _peers(scenario)
    why = "size a partial output"
    heads = model.need("heads", why) // scenario.mesh.tp
    width = model.need("kv_lora_rank" if model.mla else "v_head_dim", why)
    count = peers * tokens / cp
    return shared_line(
        scenario.cluster,
        "cp",
        str(HopKind.PARTIALS_RETURN),
        elements=count * heads * (width + 2),
        size=count * partial_bytes(scenario),
        ib_share=_shard_share(scenario),
        formula=f"{formula}·(T/cp)·(n_h/tp)·({'kv_lora' if model.mla else 'd_v'} + m, ℓ)",
        numbers=f"{peers}·({tokens}/{cp})·{heads}·({width}+2)",
        times=model.layers,
    )


def _peers(scenario: Scenario) -> tuple[int, str]:
    """How many other ranks keep tokens of a rank's KV heads, and that as a formula."""
    cp, dcp = scenario.mesh.cp, scenario.plan.dcp
    return cp * dcp - 1, "(cp-1)" if dcp == 1 else "(dcp-1)" if cp == 1 else "(cp·dcp-1)"


def _shard_share(scenario: Scenario) -> float:
    """Share of those pairs that cross NVLink domains, over all layers."""
    return share_of_groups(scenario, _shard_groups(scenario), layers_by_stage(scenario))


def _shard_groups(scenario: Scenario) -> Int64s:
    """Ranks that share the tokens of the same KV heads, ``[groups, cp·dcp]``."""
    mesh, dcp = scenario.mesh, scenario.plan.dcp
    replicas = mesh.groups("replica").astype(np.int64)
    blocks = mesh.coordinates_of(replicas)["tp"] // dcp
    order = np.argsort(blocks, axis=1, kind="stable")
    grouped: Int64s = np.take_along_axis(replicas, order, axis=1).reshape(-1, mesh.cp * dcp)
    return grouped


def head_lines(scenario: Scenario, tokens: int) -> list[AxisTraffic]:
    """The LM head's line in decode, where it reads every row; none in prefill, where it reads one of T.

    Left out as well where the model states no vocabulary.
    """
    model, tp, cp = scenario.model, scenario.mesh.tp, scenario.mesh.cp
    if not scenario.decodes or tp == 1 or model.vocab is None:
        return []
    split = scenario.plan.sp is Sp.MEGATRON
    row, logits = model.need("hidden", "size a row") if split else 0, -(-model.vocab // tp)
    count = (tp - 1) * tokens / (tp * cp)
    last = [0] * (scenario.mesh.stages - 1) + [1]
    copied = "d + " if split else ""
    line = shared_line(
        scenario.cluster,
        "tp",
        "lm_head",
        elements=count * (row + logits),
        size=count * (row * BYTES[scenario.dtype.activations] + logits * BYTES[scenario.dtype.logits]),
        ib_share=crossing_share(scenario, "tp", last),
        formula=f"(tp-1)/tp·(T/cp)·({copied}V/tp), last stage",
        numbers=f"{tp - 1}/{tp}·({tokens}/{cp})·({f'{row} + ' if split else ''}{logits})",
        times=1,
        per="step",
    )
    return [line]

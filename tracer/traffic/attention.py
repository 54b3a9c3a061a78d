"""What attention is expected to move so that queries and K/V meet, and what the LM head moves in decode.

In prefill K/V travels over cp. In decode the query does (pass-Q): to every rank that keeps other tokens of
its KV heads, over cp and over the DCP group, and partial outputs with m and ℓ come back; or the new
token's K/V travels as in prefill (pass-KV). Counting rules, sections 6 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES
from tracer.scenario.plan import DecodeAttention, KvExchange, Sp
from tracer.traffic.line import (
    AxisTraffic,
    crossing_share,
    layers_by_stage,
    plain_line,
    runs_of,
    shared_line,
)
from tracer.trip.hop import HopKind
from tracer.trip.hops.cp import attention_way, kv_elements, partial_bytes, query_elements
from tracer.trip.hops.heads import head_slice

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def attention_lines(scenario: Scenario, tokens: int) -> list[AxisTraffic]:
    """Lines of axis cp by the scenario's phase; none where every rank has the K/V that it needs."""
    cp, dcp = scenario.mesh.cp, scenario.plan.dcp
    moves_heads = scenario.plan.head_parts(cp) > 1
    if scenario.decodes and not moves_heads and attention_way(scenario) is DecodeAttention.PASS_Q:
        return [_query_line(scenario, tokens), _partials_line(scenario, tokens)] if cp * dcp > 1 else []
    parts = scenario.plan.head_parts(cp)
    exchanged = [_exchange_line(scenario, tokens)] if cp > parts else []
    if parts == 1:
        return exchanged
    scatter, gather = _heads_lines(scenario, tokens)
    return [scatter, *exchanged, gather]


def _exchange_line(scenario: Scenario, tokens: int) -> AxisTraffic:
    """K/V of T/cp tokens to every other CP rank; MLA: the latent."""
    model, cp = scenario.model, scenario.mesh.cp
    if scenario.plan.head_parts(cp) > 1:
        return _ring_line(scenario, tokens)
    each = kv_elements(scenario)
    formula = "(cp-1)·(T/cp)·(kv_lora+rope)" if model.mla else "(cp-1)·(T/cp)·2·max(1, n_kv/tp)·d_h"
    return plain_line(
        scenario.cluster,
        "cp",
        "attention",
        elements=(cp - 1) * tokens / cp * each,
        element_bytes=BYTES[scenario.dtype.kv],
        ib_share=crossing_share(
            scenario, (Axis.CP,), layers_by_stage(scenario), ring=scenario.plan.kv_exchange is KvExchange.RING
        ),
        formula=formula,
        numbers=f"{cp - 1}·({tokens}/{cp})·{each}",
        times=model.layers,
    )


def _heads_lines(scenario: Scenario, tokens: int) -> tuple[AxisTraffic, AxisTraffic]:
    """Heads of T/cp tokens to the ranks that compute them, and their outputs back (Ulysses)."""
    cp, dtype = scenario.mesh.cp, scenario.dtype
    parts, each = scenario.plan.head_parts(cp), head_slice(scenario)
    count = (parts - 1) * tokens / cp
    share = crossing_share(
        scenario, (Axis.CP,), layers_by_stage(scenario), cut=lambda ranks: runs_of(ranks, parts)
    )
    lead, width = f"{parts - 1}·({tokens}/{cp})", "(kv_nope+rope)" if scenario.model.mla else "d_h"
    group = "cp" if parts == cp else "inner"
    of, few = (
        f"(tp·{group})",
        scenario.model.mla or (scenario.model.kv_heads or 0) >= scenario.mesh.tp * parts,
    )
    kv_heads = f"n_kv/{of}" if few else f"max(1, n_kv/{of})"
    scatter = shared_line(
        scenario.cluster,
        "cp",
        str(HopKind.HEADS_SCATTER),
        elements=count * (each.query + each.kv),
        size=count * (each.query * BYTES[dtype.activations] + each.kv * BYTES[dtype.kv]),
        ib_share=share,
        formula=f"({group}-1)·(T/cp)·(n_h/{of}·{width} + K, V of {kv_heads})",
        numbers=f"{lead}·({each.query} + {each.kv})",
        times=scenario.model.layers,
    )
    gather = shared_line(
        scenario.cluster,
        "cp",
        str(HopKind.HEADS_GATHER),
        elements=count * each.output,
        size=count * each.output * BYTES[dtype.activations],
        ib_share=share,
        formula=f"({group}-1)·(T/cp)·n_h/{of}·d_v",
        numbers=f"{lead}·{each.output}",
        times=scenario.model.layers,
    )
    return scatter, gather


def _ring_line(scenario: Scenario, tokens: int) -> AxisTraffic:
    """K/V heads of an inner group's tokens round the other inner groups (hierarchical CP)."""
    cp = scenario.mesh.cp
    parts, each = scenario.plan.head_parts(cp), head_slice(scenario).kv
    return plain_line(
        scenario.cluster,
        "cp",
        "attention",
        elements=(cp // parts - 1) * tokens * parts / cp * each,
        element_bytes=BYTES[scenario.dtype.kv],
        ib_share=crossing_share(
            scenario,
            (Axis.CP,),
            layers_by_stage(scenario),
            ring=True,
            # Rank n of every inner group: they stand ``parts`` apart.
            cut=lambda ranks: (ranks[first::parts] for first in range(parts)),
        ),
        formula="(cp/inner-1)·(T·inner/cp)·K, V of n_kv/(tp·inner)",
        numbers=f"{cp // parts - 1}·({tokens}·{parts}/{cp})·{each}",
        times=scenario.model.layers,
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
    """Share of those pairs that cross NVLink domains, over all layers.

    They are pairs of ranks that share the tokens of the same KV heads: cp·dcp of a replica.
    """
    mesh, dcp = scenario.mesh, scenario.plan.dcp

    def cut(ranks: tuple[int, ...]) -> Iterator[Sequence[int]]:
        """A replica's ranks by the block of ``dcp`` TP ranks that they are in."""
        ordered = sorted(ranks, key=lambda rank: mesh.dense.coordinate(rank, Axis.TP) // dcp)
        return runs_of(ordered, mesh.cp * dcp)

    return crossing_share(scenario, (Axis.TP, Axis.CP), layers_by_stage(scenario), cut=cut)


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
    last = [int(stage == scenario.head_stage) for stage in range(scenario.mesh.stages)]
    copied = "d + " if split else ""
    line = shared_line(
        scenario.cluster,
        "tp",
        "lm_head",
        elements=count * (row + logits),
        size=count * (row * BYTES[scenario.dtype.activations] + logits * BYTES[scenario.dtype.logits]),
        ib_share=crossing_share(scenario, (Axis.TP,), last),
        formula=f"(tp-1)/tp·(T/cp)·({copied}V/tp), last stage",
        numbers=f"{tp - 1}/{tp}·({tokens}/{cp})·({f'{row} + ' if split else ''}{logits})",
        times=1,
        per="step",
    )
    return [line]

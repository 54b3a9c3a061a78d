"""What attention is expected to move so that queries and K/V meet, and what the LM head moves in decode.

In prefill K/V travels over cp. In decode the query does (pass-Q): to every rank that keeps other tokens of
its KV heads, over cp and over the DCP group, and partial outputs with m and ℓ come back; or the new
token's K/V travels as in prefill (pass-KV). Counting rules, sections 6 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tracer.memory.kv_bytes import index_bytes, kv_bytes_of_layer
from tracer.mesh.axes import Axis
from tracer.model.dtype import BYTES
from tracer.model.layers import CompressedAttention, HeadAttention, LatentAttention, LinearAttention, Mamba2
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
from tracer.trip.hops.cp import attention_way, kv_elements, partial_bytes, partial_shape, query_elements
from tracer.trip.hops.heads import head_slice
from tracer.trip.hops.state import state_bytes
from tracer.trip.kinds import (
    Meeting,
    attention_at,
    distinct_layers,
    has_kv,
    head_parts_at,
    kind_at,
    meeting_at,
    ring_steps,
    state_layer,
)

if TYPE_CHECKING:
    from tracer.model.layers import Attention, LayerKind
    from tracer.scenario.scenario import Scenario


def attention_lines(scenario: Scenario, tokens: int) -> list[AxisTraffic]:
    """Lines of axis cp by the scenario's phase; none where every rank has the K/V that it needs.

    Layers that exchange alike are one line.
    """
    found: list[AxisTraffic] = []
    if scenario.mesh.cp * scenario.plan.dcp == 1:
        return found
    way = attention_way(scenario) if scenario.decodes else DecodeAttention.PASS_KV
    for layers in distinct_layers(scenario, way):
        lines = _lines_of(scenario, tokens, layers, meeting_at(scenario, layers[0], way))
        found += [replace(line, layers=layers) for line in lines] if scenario.model.layer_kinds else lines
    return _together(found, scenario.model.layers)


def _lines_of(
    scenario: Scenario, tokens: int, layers: tuple[int, ...], meeting: Meeting
) -> list[AxisTraffic]:
    """What layers that meet in one way move."""
    if meeting is Meeting.KV:
        return [_exchange_line(scenario, tokens, layers)]
    if meeting is Meeting.QUERY:
        return [_query_line(scenario, tokens, layers), _partials_line(scenario, tokens, layers)]
    if meeting is Meeting.HEADS:
        return _heads_lines(scenario, tokens, layers)
    return [_state_line(scenario, tokens, layers)] if meeting is Meeting.STATE else []


def _together(lines: list[AxisTraffic], layers: int) -> list[AxisTraffic]:
    """Lines that differ in their layers alone, as one; each says of how many layers it is."""
    found: dict[AxisTraffic, tuple[int, ...]] = {}
    for line in lines:
        key = replace(line, times=0, layers=())
        found[key] = tuple(sorted(found.get(key, ()) + line.layers))
    if not all(found.values()):
        return lines
    return [
        replace(
            line,
            times=len(own),
            layers=own,
            per=line.per if len(own) == layers else f"layer ({len(own)} of {layers})",
        )
        for line, own in found.items()
    ]


def _weights(scenario: Scenario, layers: tuple[int, ...]) -> list[int]:
    """How many of the layers each stage has."""
    return layers_by_stage(scenario, frozenset(layers).__contains__)


def _exchange_line(scenario: Scenario, tokens: int, layers: tuple[int, ...]) -> AxisTraffic:
    """K/V of T/cp tokens to every other CP rank; MLA: the latent."""
    cp, kind = scenario.mesh.cp, kind_at(scenario.model, layers[0])
    steps = ring_steps(scenario, layers[0])
    each, size, formula = _token_kv(scenario, kind)
    ring = scenario.plan.kv_exchange is not KvExchange.ALL_GATHER
    lead = "(cp-1)" if steps == cp - 1 else "steps of the window"
    return shared_line(
        scenario.cluster,
        "cp",
        "attention",
        elements=steps * tokens / cp * each,
        size=steps * tokens / cp * size,
        ib_share=crossing_share(scenario, (Axis.CP,), _weights(scenario, layers), ring=ring),
        formula=f"{lead}·(T/cp)·{formula}",
        numbers=f"{steps}·({tokens}/{cp})·{each:g}",
        times=len(layers),
    )


def _token_kv(scenario: Scenario, kind: LayerKind | None) -> tuple[float, float, str]:
    """(elements, bytes, formula) of what one token's K/V on a TP rank has, on average over tokens."""
    dtype, tp = scenario.dtype.kv, scenario.mesh.tp
    if kind is None or kind.attention is None:
        each = kv_elements(scenario)
        formula = "(kv_lora+rope)" if scenario.model.mla else "2·max(1, n_kv/tp)·d_h"
        return each, each * BYTES[dtype], formula
    attention, own, index = kind.attention, kv_bytes_of_layer(kind, dtype, tp), index_bytes(kind)
    extra = " + index key" if index else ""
    if isinstance(attention, CompressedAttention):
        part = 1 / attention.ratio if attention.ratio else 0.0
        entries = f" + (d_h{extra})/{attention.ratio}" if attention.ratio else ""
        values = attention.kv_values + part * (attention.kv_values + attention.index_values)
        return values, own + part * (own + index), f"(d_h{entries})"
    if isinstance(attention, LatentAttention):
        formula = f"(kv_lora+rope{extra})"
        return attention.kv_values + attention.index_values, own + index, formula
    if not isinstance(attention, HeadAttention):
        return 0, 0, ""
    heads = max(1, attention.kv_heads // tp)
    values = attention.kv_values // attention.kv_heads * heads + attention.index_values
    formula = "2·max(1, n_kv/tp)·d_h"
    return values, own + index, f"({formula}{extra})" if extra else formula


def _state_line(scenario: Scenario, tokens: int, layers: tuple[int, ...]) -> AxisTraffic:
    """States that are handed on: after each piece of a prompt; in decode with each new token."""
    mesh = scenario.mesh
    cp, size = mesh.cp, state_bytes(scenario, layers[0])
    weights = _weights(scenario, layers)
    values = _state_values(attention_at(scenario.model, layers[0])) / mesh.tp
    if scenario.decodes:
        sends: float = tokens / cp
        share = crossing_share(scenario, (Axis.CP,), weights, ring=True)
        formula, numbers = "(T/cp)·state/tp", f"({tokens}/{cp})·{values:g}"
    else:
        zigzag = scenario.landing.is_zigzag
        steps = 2 * cp - 2 if zigzag else cp - 1
        sends = steps / cp
        share = crossing_share(scenario, (Axis.CP,), weights, cut=lambda ranks: list(pairwise(ranks)))
        formula = f"({'2cp-2' if zigzag else 'cp-1'})/cp·state/tp, whatever T"
        numbers = f"{steps}/{cp}·{values:g}"
    return shared_line(
        scenario.cluster,
        "cp",
        str(HopKind.STATE_PASS),
        elements=sends * values,
        size=sends * size,
        ib_share=share,
        formula=formula,
        numbers=numbers,
        times=len(layers),
    )


def _state_values(attention: Attention | None) -> int:
    """Elements of a state with its convolution's last inputs."""
    if isinstance(attention, LinearAttention | Mamba2):
        return attention.state_values + attention.conv_values
    return 0


def _heads_lines(scenario: Scenario, tokens: int, layers: tuple[int, ...]) -> list[AxisTraffic]:
    """Heads of T/cp tokens to the ranks that compute them, and their outputs back (Ulysses)."""
    cp, dtype, model = scenario.mesh.cp, scenario.dtype, scenario.model
    parts, each = head_parts_at(scenario, layers[0]), head_slice(scenario, layers[0])
    count = (parts - 1) * tokens / cp
    share = crossing_share(
        scenario, (Axis.CP,), _weights(scenario, layers), cut=lambda ranks: runs_of(ranks, parts)
    )
    lead = f"{parts - 1}·({tokens}/{cp})"
    group = "cp" if parts == cp else "inner"
    scatter = shared_line(
        scenario.cluster,
        "cp",
        str(HopKind.HEADS_SCATTER),
        elements=count * (each.query + each.kv),
        size=count * (each.query * BYTES[dtype.activations] + each.kv * BYTES[dtype.kv]),
        ib_share=share,
        formula=f"({group}-1)·(T/cp)·({_scattered(scenario, layers[0], f'(tp·{group})')})",
        numbers=f"{lead}·({each.query} + {each.kv})",
        times=len(layers),
    )
    gather = shared_line(
        scenario.cluster,
        "cp",
        str(HopKind.HEADS_GATHER),
        elements=count * each.output,
        size=count * each.output * BYTES[dtype.activations],
        ib_share=share,
        formula=f"({group}-1)·(T/cp)·n_h/(tp·{group})·d_v",
        numbers=f"{lead}·{each.output}",
        times=len(layers),
    )
    ring = cp > parts and has_kv(model, layers[0])
    return [scatter, *([_ring_line(scenario, tokens, layers)] if ring else []), gather]


def _scattered(scenario: Scenario, layer: int, of: str) -> str:
    """What a CP rank's heads are made of, as a formula."""
    model = scenario.model
    attention = attention_at(model, layer)
    if state_layer(model, layer) is not None:
        return f"projections/{of}"
    mla = isinstance(attention, LatentAttention) if attention is not None else model.mla
    kv_heads = model.kv_heads if attention is None else getattr(attention, "kv_heads", 0)
    if getattr(attention, "shared_kv", False):
        return f"n_h/{of}·d_h"
    enough = mla or (kv_heads or 0) >= scenario.mesh.tp * head_parts_at(scenario, layer)
    width = "(kv_nope+rope)" if mla else "d_h"
    return f"n_h/{of}·{width} + K, V of {f'n_kv/{of}' if enough else f'max(1, n_kv/{of})'}"


def _ring_line(scenario: Scenario, tokens: int, layers: tuple[int, ...]) -> AxisTraffic:
    """K/V heads of an inner group's tokens round the other inner groups (hierarchical CP)."""
    cp = scenario.mesh.cp
    parts = scenario.plan.head_parts(cp)
    each = head_slice(scenario, layers[0]).kv
    return plain_line(
        scenario.cluster,
        "cp",
        "attention",
        elements=(cp // parts - 1) * tokens * parts / cp * each,
        element_bytes=BYTES[scenario.dtype.kv],
        ib_share=crossing_share(
            scenario,
            (Axis.CP,),
            _weights(scenario, layers),
            ring=True,
            # Rank n of every inner group: they stand ``parts`` apart.
            cut=lambda ranks: (ranks[first::parts] for first in range(parts)),
        ),
        formula="(cp/inner-1)·(T·inner/cp)·K, V of n_kv/(tp·inner)",
        numbers=f"{cp // parts - 1}·({tokens}·{parts}/{cp})·{each}",
        times=len(layers),
    )


def _query_line(scenario: Scenario, tokens: int, layers: tuple[int, ...]) -> AxisTraffic:
    """Queries of T/cp requests, each TP rank's heads, to every rank that keeps a shard of their context."""
    cp = scenario.mesh.cp
    peers, formula = _peers(scenario)
    each = query_elements(scenario, layers[0])
    width = "(kv_lora+rope)" if _is_latent(scenario, layers[0]) else "d_h"
    return plain_line(
        scenario.cluster,
        "cp",
        str(HopKind.QUERY_SEND),
        elements=peers * tokens / cp * each,
        element_bytes=BYTES[scenario.dtype.activations],
        ib_share=_shard_share(scenario, layers),
        formula=f"{formula}·(T/cp)·(n_h/tp)·{width}",
        numbers=f"{peers}·({tokens}/{cp})·{each}",
        times=len(layers),
    )


def _is_latent(scenario: Scenario, layer: int) -> bool:
    """Whether a layer caches a latent."""
    kind = kind_at(scenario.model, layer)
    return scenario.model.mla if kind is None else isinstance(kind.attention, LatentAttention)


def _partials_line(scenario: Scenario, tokens: int, layers: tuple[int, ...]) -> AxisTraffic:
    """One partial output a query sent, with m and ℓ of each head, back to where it came from."""
    cp = scenario.mesh.cp
    peers, formula = _peers(scenario)
    all_heads, width = partial_shape(scenario, layers[0])
    heads = all_heads // scenario.mesh.tp
    count = peers * tokens / cp
    latent = _is_latent(scenario, layers[0])
    return shared_line(
        scenario.cluster,
        "cp",
        str(HopKind.PARTIALS_RETURN),
        elements=count * heads * (width + 2),
        size=count * partial_bytes(scenario, layers[0]),
        ib_share=_shard_share(scenario, layers),
        formula=f"{formula}·(T/cp)·(n_h/tp)·({'kv_lora' if latent else 'd_v'} + m, ℓ)",
        numbers=f"{peers}·({tokens}/{cp})·{heads}·({width}+2)",
        times=len(layers),
    )


def _peers(scenario: Scenario) -> tuple[int, str]:
    """How many other ranks keep tokens of a rank's KV heads, and that as a formula."""
    cp, dcp = scenario.mesh.cp, scenario.plan.dcp
    return cp * dcp - 1, "(cp-1)" if dcp == 1 else "(dcp-1)" if cp == 1 else "(cp·dcp-1)"


def _shard_share(scenario: Scenario, layers: tuple[int, ...]) -> float:
    """Share of those pairs that cross NVLink domains, over the layers.

    They are pairs of ranks that share the tokens of the same KV heads: cp·dcp of a replica.
    """
    mesh, dcp = scenario.mesh, scenario.plan.dcp

    def cut(ranks: tuple[int, ...]) -> Iterator[Sequence[int]]:
        """A replica's ranks by the block of ``dcp`` TP ranks that they are in."""
        ordered = sorted(ranks, key=lambda rank: mesh.dense.coordinate(rank, Axis.TP) // dcp)
        return runs_of(ordered, mesh.cp * dcp)

    return crossing_share(scenario, (Axis.TP, Axis.CP), _weights(scenario, layers), cut=cut)


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

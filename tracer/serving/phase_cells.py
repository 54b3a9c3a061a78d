"""The cells of the table that sets prefill beside decode; each takes a scenario in its phase.

A cell also says whether a matmul over so many rows is bound by arithmetic or by reading its weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tracer.display import exact_sum, format_bytes, format_seconds
from tracer.mesh.axes import Axis
from tracer.mesh.cluster import Tier
from tracer.model.dtype import BYTES
from tracer.scenario.plan import Contract, DecodeAttention, DispatchMode, Sp
from tracer.serving.lockstep import meeting_replicas
from tracer.traffic.traffic import stage_sends
from tracer.trip.clock import transfer_seconds
from tracer.trip.hops.cp import attention_way, kv_bytes, kv_elements, partial_bytes, query_elements
from tracer.trip.hops.heads import head_slice
from tracer.trip.hops.moves import row_bytes
from tracer.trip.hops.state import state_bytes
from tracer.trip.kinds import (
    Meeting,
    distinct_layers,
    head_parts_at,
    meeting_at,
    ring_steps,
    state_walk,
)

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


Bound = tuple[str, dict[str, float], str]


def bound_words(scenario: Scenario, rows: int) -> Bound:
    """(sentence, figures, why only stated) for weights that ``rows`` rows share.

    A weight of b bytes is read once and does 2 FLOP per row: ``2 · rows / b`` FLOP per byte against the GPU's
    peak FLOP/s over its HBM bytes/s (both from its data sheet figures; the roofline of one matmul).
    """
    size = BYTES[scenario.dtype.weights]
    intensity = 2 * rows / size
    figures: dict[str, float] = {"rows": rows, "flop_per_byte": intensity}
    ridge = _ridge(scenario, size)
    if ridge is None:
        usual = "memory-bound" if scenario.decodes else "compute-bound"
        return (
            f"matmuls of {rows:,} row{'s' * (rows > 1)}: {intensity:,.4g} FLOP a weight byte, "
            f"usually {usual}",
            figures,
            "no peak rates known: name cluster.hardware that has them",
        )
    word = "compute-bound" if intensity >= ridge else "memory-bound"
    against = f"{intensity:,.4g} FLOP a weight byte, the ridge is at {ridge:,.4g}"
    words = f"matmuls of {rows:,} row{'s' * (rows > 1)} are {word}: {against}"
    return words, figures | {"ridge_flop_per_byte": ridge}, ""


def _ridge(scenario: Scenario, size: int) -> float | None:
    """Peak FLOP/s over HBM bytes/s of the named hardware, for weights of ``size`` bytes."""
    hardware = scenario.cluster.gpu
    if hardware is None:
        return None
    peak = hardware.fp8_flops if size == 1 else hardware.bf16_flops
    if peak is None or hardware.hbm_bytes_per_s is None:
        return None
    return peak / hardware.hbm_bytes_per_s


@dataclass(frozen=True, slots=True)
class Cell:
    """What an axis does in a phase: a sentence, the figures in it, and why a part is only stated.

    ``reason`` is empty when all of it is computed.
    """

    text: str
    figures: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def computed(self) -> bool:
        """Whether everything said follows from the scenario's numbers."""
        return not self.reason

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "text": self.text,
            "figures": dict(self.figures),
            "computed": self.computed,
            "reason": self.reason,
        }

    def __str__(self) -> str:
        return self.text + (f" (stated: {self.reason})" if self.reason else "")


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number > 1)}"


def tokens_per_cp_rank(scenario: Scenario) -> int:
    """Rows that one CP rank computes in a step, padding included: its share of a prompt, or its batch."""
    if scenario.decodes:
        return scenario.decode_landing.padded
    return scenario.landing.padded // scenario.mesh.cp


def dp_cell(scenario: Scenario) -> Cell:
    """Requests over replicas, and where these meet."""
    dp, cp = scenario.mesh.dp, scenario.mesh.cp
    requests = scenario.decode_landing.batch * cp if scenario.decodes else 1
    tokens = requests if scenario.decodes else scenario.token.prompt
    met = max(len(group) for group in meeting_replicas(scenario))
    layers = scenario.model.moe_layers if met > 1 else 0
    work = (
        f"{_count(requests, 'request')}, one new token each"
        if scenario.decodes
        else f"one prompt of {tokens:,} tokens"
    )
    meets = f"{met} of them meet at each of {layers} MoE layers" if layers else "they never meet"
    figures = {
        "replicas": dp,
        "requests_per_replica": requests,
        "tokens_per_replica": tokens,
        "met": met,
        "meetings": layers,
    }
    return Cell(f"{dp} replicas, {work} a step; {meets}", figures)


def cp_cell(scenario: Scenario) -> Cell:
    """What travels between the ranks that share a context."""
    cp, dcp, tp = scenario.mesh.cp, scenario.plan.dcp, scenario.mesh.tp
    if scenario.model.layer_kinds and cp * dcp > 1:
        return _kinds_cell(scenario)
    own = kv_elements(scenario) * BYTES[scenario.dtype.kv] * tp
    parts = scenario.plan.head_parts(cp)
    if parts > 1:
        return _heads_cell(scenario, parts)
    if not scenario.decodes:
        if cp == 1:
            return Cell("does not cut the prompt: K/V stays where it is made", {"kv_bytes": 0})
        sent = own * (cp - 1)
        tokens = tokens_per_cp_rank(scenario)
        return Cell(
            f"cuts the prompt into {cp} shares of {tokens:,} tokens; each token's K/V travels: "
            f"{format_bytes(sent)} a layer",
            {"tokens_per_rank": tokens, "kv_bytes": sent},
        )
    if cp * dcp == 1:
        return Cell("K/V is on one rank: query and K/V meet there", {"query_bytes": 0, "partial_bytes": 0})
    shards = cp * dcp - 1
    moved_kv = own * (cp - 1) * scenario.position
    if attention_way(scenario) is DecodeAttention.PASS_KV:
        return Cell(
            f"K/V travels (pass-KV): {format_bytes(moved_kv)} a layer for a context of {scenario.position:,}",
            {"kv_bytes": moved_kv},
        )
    query = query_elements(scenario) * BYTES[scenario.dtype.activations] * tp * shards
    partial = partial_bytes(scenario) * tp * shards
    carved = f" over cp {cp} and dcp {dcp}" if dcp > 1 else ""
    return Cell(
        f"K/V stays put{carved}; the query goes out ({format_bytes(query)} a layer) and partial outputs "
        f"return ({format_bytes(partial)}); its context's K/V is {format_bytes(own * scenario.position)}",
        {"query_bytes": query, "partial_bytes": partial, "context_kv_bytes": own * scenario.position},
    )


_MET_WORDS = {
    "kv_bytes": "K/V travels",
    "query_bytes": "queries go out",
    "partial_bytes": "partial outputs return",
    "heads_bytes": "heads go out",
    "output_bytes": "their outputs return",
    "state_bytes": "states are handed on",
}


def _kinds_cell(scenario: Scenario) -> Cell:
    """What one token exchanges over all layers, where they are not alike."""
    way = attention_way(scenario) if scenario.decodes else DecodeAttention.PASS_KV
    figures: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for layers in distinct_layers(scenario, way):
        for name, size in _exchanged(scenario, layers[0], meeting_at(scenario, layers[0], way)).items():
            figures[name] += size * len(layers)
            counts[name] += len(layers)
    parts = [
        f"{_MET_WORDS[name]} in {_count(counts[name], 'layer')} ({format_bytes(size)})"
        for name, size in figures.items()
    ]
    text = f"of one token, over all layers: {', '.join(parts)}" if parts else "no layer exchanges anything"
    return Cell(text, dict(figures))


def _exchanged(scenario: Scenario, layer: int, meeting: Meeting) -> dict[str, int]:
    """Bytes that one token exchanges in a layer, all TP ranks together."""
    tp, dtype = scenario.mesh.tp, scenario.dtype
    if meeting is Meeting.KV:
        return {"kv_bytes": kv_bytes(scenario, layer, scenario.position) * tp * ring_steps(scenario, layer)}
    if meeting is Meeting.QUERY:
        shards = tp * (scenario.mesh.cp * scenario.plan.dcp - 1)
        query = query_elements(scenario, layer) * BYTES[dtype.activations]
        return {"query_bytes": query * shards, "partial_bytes": partial_bytes(scenario, layer) * shards}
    if meeting is Meeting.HEADS:
        each, parts = head_slice(scenario, layer), head_parts_at(scenario, layer)
        moved = tp * (parts - 1)
        out = each.query * BYTES[dtype.activations] + each.kv * BYTES[dtype.kv]
        ring = each.kv * BYTES[dtype.kv] * tp * parts * (scenario.mesh.cp // parts - 1)
        found = {"heads_bytes": out * moved, "output_bytes": each.output * BYTES[dtype.activations] * moved}
        return found | ({"kv_bytes": ring} if ring else {})
    if meeting is Meeting.STATE:
        walk = state_walk(scenario, scenario.position)
        return {"state_bytes": state_bytes(scenario, layer) * tp * sum(a != b for a, b in pairwise(walk))}
    return {}


def _heads_cell(scenario: Scenario, parts: int) -> Cell:
    """What CP ranks that share heads send of one token (Ulysses, hierarchical)."""
    each, dtype, tp = head_slice(scenario, 1), scenario.dtype, scenario.mesh.tp
    out = (each.query * BYTES[dtype.activations] + each.kv * BYTES[dtype.kv]) * tp * (parts - 1)
    back = each.output * BYTES[dtype.activations] * tp * (parts - 1)
    outer = scenario.mesh.cp // parts
    ring = each.kv * BYTES[dtype.kv] * tp * parts * (outer - 1)
    round_the_ring = f"; its K/V goes round {outer} groups ({format_bytes(ring)})" if outer > 1 else ""
    return Cell(
        f"{parts} CP ranks share heads: a token's go out ({format_bytes(out)} a layer) and their outputs "
        f"return ({format_bytes(back)}){round_the_ring}",
        {"heads_bytes": out, "output_bytes": back, "kv_bytes": ring},
    )


def sp_cell(scenario: Scenario) -> Cell:
    """How rows outside attention lie over the TP group."""
    tp, rows = scenario.mesh.tp, tokens_per_cp_rank(scenario)
    if tp == 1:
        return Cell(f"tp 1: nothing to split, {_count(rows, 'row')} a rank", {"rows_per_rank": rows})
    what = "decode tokens of the batch" if scenario.decodes else "prompt tokens"
    landing = scenario.decode_landing
    real = landing.batch if scenario.decodes else scenario.token.prompt
    padding = rows - landing.batch if scenario.decodes else scenario.landing.padded - scenario.token.prompt
    figures = {"rows_per_rank": rows // tp, "padding_rows": padding, "real_rows": real}
    if scenario.plan.sp is not Sp.MEGATRON:
        copies = f"every TP rank keeps all {rows:,} {what}"
        split = ", split just before dispatch" if scenario.plan.sp is Sp.BEFORE_DISPATCH else ""
        return Cell(copies + split, figures | {"rows_per_rank": rows})
    padded = f" (padded by {padding} to a multiple of tp)" if padding else ""
    return Cell(f"splits {what}: {_count(rows // tp, 'row')} a rank{padded}", figures)


def tp_cell(scenario: Scenario) -> Cell:
    """The collectives of attention, and what bounds the matmuls between them."""
    tp, rows = scenario.mesh.tp, tokens_per_cp_rank(scenario)
    bound, figures, reason = bound_words(scenario, rows)
    if tp == 1:
        return Cell(f"does not cut: {bound}", figures, reason)
    sent = 2 * (tp - 1) * row_bytes(scenario) * rows // tp
    tier = _slowest_tier(scenario)
    link = scenario.cluster.link(tier)
    latency = 2 * link.latency_s
    seconds = sent / link.bytes_per_s
    figures = figures | {"bytes_per_gpu": sent, "seconds": seconds, "latency_seconds": latency}
    if latency == 0:
        reason = "; ".join(
            filter(None, [reason, f"no latency given: set cluster.{tier}_latency_s to weigh it"])
        )
        weigh = f"{format_seconds(seconds)} of bytes"
    else:
        bigger = "latency" if latency > seconds else "bytes"
        weigh = f"bound by {bigger}: {format_seconds(seconds)} of bytes, {format_seconds(latency)} of latency"
    return Cell(f"{bound}; collectives of {format_bytes(sent)} a GPU and layer, {weigh}", figures, reason)


def _slowest_tier(scenario: Scenario) -> Tier:
    """The tier that a TP group's collectives wait for."""
    tiers = {
        scenario.cluster.tier(scenario.home, peer) for peer in scenario.mesh.group(scenario.home, Axis.TP)
    }
    return Tier.IB if Tier.IB in tiers else Tier.NVLINK


def ep_cell(scenario: Scenario) -> Cell:
    """Tokens an expert gets, and how they are sent."""
    model, mesh = scenario.model, scenario.mesh
    if not model.moe_layers:
        return Cell("no experts", {})
    met = max(len(group) for group in meeting_replicas(scenario))
    tokens = met * mesh.cp * tokens_per_cp_rank(scenario)
    experts = model.need("experts", "count tokens per expert")
    each = tokens * model.need("top_k", "count tokens per expert") / experts
    figures = {"tokens": tokens, "tokens_per_expert": each}
    batch = (
        f"{tokens:,} tokens of {met} replica{'s' * (met > 1)} over {experts} experts: {each:.4g} an expert"
    )
    return Cell(f"{batch}, if routing is uniform; {_dispatch_words(scenario)}", figures)


def _dispatch_words(scenario: Scenario) -> str:
    plan = scenario.plan
    if plan.contract is not Contract.EP:
        words = {
            "tp": "experts are sliced, sums move",
            "ag_rs": "rows go to the whole group",
            "dwdp": "weights move",
        }
        return words[plan.contract]
    if plan.dispatch is DispatchMode.LOW_LATENCY:
        return "one message an expert straight to its GPU, no NVLink relay"
    return "one copy an island over IB, forwarded over NVLink by the relay"


def pp_cell(scenario: Scenario) -> Cell:
    """How stages are filled, or waited for."""
    pp, moves = scenario.mesh.stages, stage_sends(scenario)
    if pp == 1:
        return Cell("one stage: nothing to fill or wait for", {"stages": 1, "sends": 0})
    sends = len(moves)
    if not scenario.decodes:
        return Cell(
            f"{pp} stages, filled by other micro-batches; one alone leaves each stage idle "
            f"{(pp - 1) / pp:.0%} of the time",
            {"stages": pp, "sends": sends, "idle_share_of_one": (pp - 1) / pp},
            "how many micro-batches are in flight depends on the load, not on the scenario",
        )
    mesh, cluster = scenario.mesh, scenario.cluster
    homes = [mesh.moved(scenario.home, Axis.PP, stage) for stage in range(pp)]
    seconds = exact_sum(
        transfer_seconds(cluster.link(cluster.tier(homes[a], homes[b])), row_bytes(scenario))
        for a, b in moves
    )
    layers = ", ".join(map(str, scenario.stage_layers))
    return Cell(
        f"every stage is on the path of each new token: {pp} stages of {layers} layers and {sends} "
        f"send{'s' * (sends > 1)}, {format_seconds(seconds)} at link rate",
        {"stages": pp, "sends": sends, "send_seconds": seconds},
    )

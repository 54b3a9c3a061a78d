"""The K/V exchange of context parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import and_list, gpus, plural
from layouts.scene.scene import Words
from layouts.words import kinds
from layouts.words.shapes import kv_shapes
from tracer.mesh.axes import Axis
from tracer.model.layers import CompressedAttention, LatentAttention
from tracer.scenario.plan import KvExchange
from tracer.trip.kinds import head_parts_at, ring_steps

if TYPE_CHECKING:
    from layouts.words.context import Context


def kv_exchange(context: Context) -> Words:
    """Keys and values travel; queries stay."""
    partners = sorted({t.dst for t in context.hop.transfers} - set(context.tp_group))
    plan = context.scenario.plan
    if plan.kv_exchange is KvExchange.HIERARCHICAL and plan.cp_inner != 1:
        return _between_groups(context)
    ring = plan.kv_exchange is not KvExchange.ALL_GATHER and context.size(Axis.CP) > 2
    return Words(
        f"Pass K/V round {context.size('cp')} CP ranks" if ring else f"Swap K/V with {gpus(partners)}",
        "Attention",
        f"{_moves(context, ring=ring)} {_content(context)}",
        _why(context),
        _gotcha(context, ring=ring),
        kv_shapes(context),
    )


def _between_groups(context: Context) -> Words:
    """Hierarchical CP: K/V heads go round the inner groups."""
    parts = context.scenario.plan.head_parts(context.size(Axis.CP))
    groups = context.size(Axis.CP) // parts
    return Words(
        f"Pass K/V heads round {groups} groups of CP ranks",
        "Attention",
        f"Each of {parts} CP ranks has some of the token's K/V heads and hands them to the rank of the same "
        f"place in the next group, {plural(groups - 1, 'step')} of {context.each_bytes}.",
        f"Heads are shared inside a group of {parts}; queries of the other {groups - 1} still need this "
        "token's keys and values.",
        "The small all-to-all stays inside a group, and the ring crosses between groups.",
    )


def heads_scatter(context: Context) -> Words:
    """Heads go to the CP ranks that compute them (Ulysses)."""
    ranks, name = _sharers(context), kinds.state_name(context)
    parts = head_parts_at(context.scenario, context.hop.layer)
    if name is not None:
        return Words(
            f"Send heads to {gpus(ranks)}",
            "Attention",
            f"Each TP rank keeps 1/{parts} of its heads and sends what {name}'s projections gave for the "
            f"others to the CP ranks that compute them: {plural(len(context.hop.transfers), 'transfer')} of "
            f"{context.each_bytes}.",
            f"Each of {parts} CP ranks then runs some heads over all tokens, so no state is handed on.",
            "The state of a head lives on one CP rank.",
        )
    return Words(
        f"Send heads to {gpus(ranks)}",
        "Attention",
        f"Each TP rank keeps 1/{parts} of its heads and sends the token's queries, keys and values of the "
        f"others to the CP ranks that compute them: {plural(len(context.hop.transfers), 'transfer')} of "
        f"{context.each_bytes}.",
        f"Each of {parts} CP ranks then has some heads of all their tokens, so attention needs no other "
        "exchange among them.",
        "K/V then lives by heads: each of these ranks keeps its heads of every position.",
    )


def heads_gather(context: Context) -> Words:
    """Outputs of the heads come home (Ulysses)."""
    return Words(
        f"Heads' outputs come back from {gpus(_sharers(context))}",
        "Attention",
        f"{plural(len(context.hop.transfers), 'transfer')} of {context.each_bytes}: the outputs of the heads "
        "that other CP ranks computed for the token.",
        "The output projection multiplies all heads of a token, so they must be on one CP rank again.",
        "It is smaller than the hop before attention: no keys and values come back.",
    )


def _sharers(context: Context) -> list[int]:
    ranks = {t.src for t in context.hop.transfers} | {t.dst for t in context.hop.transfers}
    return sorted(ranks - set(context.tp_group))


def _moves(context: Context, *, ring: bool) -> str:
    cp = context.size(Axis.CP)
    if ring:
        steps = ring_steps(context.scenario, context.hop.layer)
        short = "" if steps == cp - 1 else " Farther ranks see none of it: the layer's window ends before."
        return (
            f"The token's K/V goes round the {cp} CP ranks, {plural(steps, 'step')} of "
            f"{context.each_bytes} from each TP rank: each rank hands on what it received.{short}"
        )
    pairs = [f"{t.src:,} to {t.dst:,}" for t in context.hop.transfers]
    shown = and_list(pairs) if len(pairs) <= 4 else f"{plural(len(pairs), 'copy', 'copies')} in all"
    return (
        f"The token's K/V goes straight to the CP partners with the same heads ({shown}), "
        f"{context.each_bytes} each."
    )


def _content(context: Context) -> str:
    model, tp, attention = context.model, context.size(Axis.TP), kinds.attention_of(context)
    if isinstance(attention, LatentAttention | CompressedAttention):
        index = ", with the indexer's key" if attention.index_values else ""
        name = "MLA's latent" if isinstance(attention, LatentAttention) else "one vector for K and V"
        return f"What travels is {name}, {attention.kv_values:,} values{index}."
    if attention is None and model.mla:
        return f"What travels is MLA's latent, {model.kv_values_per_token:,} values."
    kv_heads = getattr(attention, "kv_heads", model.kv_heads or 0)
    own = max(1, kv_heads // tp)
    grouped = kinds.heads_of(context) // kv_heads if kv_heads else 1
    shrink = (
        f" GQA makes it small: {grouped} query heads share one KV head, so K/V is 1/{grouped} of what "
        "one KV head a query head would."
        if grouped > 1
        else ""
    )
    return f"K and V of {plural(own, 'head')} travel from each TP rank.{shrink}"


def _why(context: Context) -> str:
    model = context.scenario.model
    kv_heads = model.kv_heads or 0
    small = (
        " Queries stay in place, because K/V is smaller."
        if kv_heads and 2 * kv_heads < kinds.heads_of(context)
        else " Queries stay in place: they would have to bring their outputs back."
    )
    return (
        f"The prompt is cut over {context.size('cp')} CP ranks, so queries on each need keys that were "
        f"computed on the others.{small}"
    )


def _gotcha(context: Context, *, ring: bool) -> str:
    merge = (
        "Each rank ends with one partial output a block of K/V, and merges them by their softmax sums "
        "on the spot: merging costs no communication."
    )
    if not ring or ring_steps(context.scenario, context.hop.layer) < context.size("cp") - 1:
        return merge
    return f"The ring never skips a step, even to ranks whose queries all come before this token. {merge}"

"""The K/V exchange of context parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import and_list, gpus, plural
from layouts.scene.scene import Words
from layouts.words.shapes import kv_shapes
from tracer.mesh.axes import Axis
from tracer.scenario.plan import KvExchange

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
    ranks, parts = _sharers(context), context.scenario.plan.head_parts(context.size(Axis.CP))
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
        return (
            f"The token's K/V goes round the {cp} CP ranks, {plural(cp - 1, 'step')} of "
            f"{context.each_bytes} from each TP rank: each rank hands on what it received."
        )
    pairs = [f"{t.src:,} to {t.dst:,}" for t in context.hop.transfers]
    shown = and_list(pairs) if len(pairs) <= 4 else f"{plural(len(pairs), 'copy', 'copies')} in all"
    return (
        f"The token's K/V goes straight to the CP partners with the same heads ({shown}), "
        f"{context.each_bytes} each."
    )


def _content(context: Context) -> str:
    model, tp = context.model, context.size(Axis.TP)
    kv_heads = model.kv_heads or 0
    if model.mla:
        return f"What travels is MLA's latent, {model.kv_values_per_token:,} values."
    own = max(1, kv_heads // tp)
    grouped = (model.heads or 0) // kv_heads if kv_heads else 1
    shrink = (
        f" GQA makes it small: {grouped} query heads share one KV head, so K/V is 1/{grouped} of what "
        "one KV head a query head would."
        if grouped > 1
        else ""
    )
    return f"K and V of {plural(own, 'head')} travel from each TP rank.{shrink}"


def _why(context: Context) -> str:
    return (
        f"The prompt is cut over {context.size('cp')} CP ranks, so queries on each need keys that were "
        "computed on the others. Queries stay in place, because K/V is smaller."
    )


def _gotcha(context: Context, *, ring: bool) -> str:
    merge = (
        "Each rank ends with one partial output a block of K/V, and merges them by their softmax sums "
        "on the spot: merging costs no communication."
    )
    if not ring:
        return merge
    return f"The ring never skips a step, even to ranks whose queries all come before this token. {merge}"

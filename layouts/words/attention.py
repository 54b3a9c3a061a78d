"""The K/V exchange of context parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import and_list, gpus, plural
from layouts.scene.scene import Words
from layouts.words.shapes import kv_shapes
from tracer.scenario.plan import KvExchange

if TYPE_CHECKING:
    from layouts.words.context import Context


def kv_exchange(context: Context) -> Words:
    """Keys and values travel; queries stay."""
    partners = sorted({t.dst for t in context.hop.transfers} - set(context.tp_group))
    ring = context.scenario.plan.kv_exchange is KvExchange.RING and context.size("cp") > 2
    return Words(
        f"Pass K/V round {context.size('cp')} CP ranks" if ring else f"Swap K/V with {gpus(partners)}",
        "Attention",
        f"{_moves(context, ring=ring)} {_content(context)}",
        _why(context),
        _gotcha(context, ring=ring),
        kv_shapes(context),
    )


def _moves(context: Context, *, ring: bool) -> str:
    cp = context.size("cp")
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
    model, tp = context.model, context.size("tp")
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

"""Hops of decode: the query goes to the K/V, and the K/V moves once between pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import gpus, plural
from layouts.scene.scene import Words

if TYPE_CHECKING:
    from layouts.words.context import Context


def _partners(context: Context) -> list[int]:
    ranks = {t.src for t in context.hop.transfers} | {t.dst for t in context.hop.transfers}
    return sorted(ranks - set(context.tp_group))


def query_send(context: Context) -> Words:
    """The query travels to the ranks that hold the K/V."""
    return Words(
        f"Send the query to {gpus(_partners(context))}",
        "Attention",
        f"Each of the {plural(len(context.tp_group), 'TP rank')} sends its query heads to its CP "
        f"partners: {plural(len(context.hop.transfers), 'transfer')} of {context.each_bytes}.",
        "One new token has one query, and the prompt's K/V is large and lies where prefill left it: in "
        "decode the query travels and K/V stays.",
        "Prefill does the opposite: many queries, so K/V travels there.",
    )


def partials_return(context: Context) -> Words:
    """Partial outputs come back, with what merging needs."""
    return Words(
        f"Partial outputs come back from {gpus(_partners(context))}",
        "Attention",
        "Each CP partner returns its output over the K/V it holds, with its softmax maximum and sum: "
        f"{plural(len(context.hop.transfers), 'transfer')} of {context.each_bytes}.",
        "The outputs are exact over parts of the context; the maxima and sums weigh them into one.",
        "Maxima and sums travel in FP32: a rounding there would weigh whole blocks of the context wrongly.",
    )


def kv_transfer(context: Context) -> Words:
    """K/V hand-over, from the prefill pool to the decode pool."""
    return Words(
        "K/V moves to the decode pool",
        "Leaving",
        f"The token's K/V of all layers moves: {plural(len(context.hop.transfers), 'transfer')}.",
        "Prefill and decode run on pools of their own, with meshes of their own, because their "
        "bottlenecks differ.",
        "It moves once a request, layer by layer while prefill still runs.",
    )

"""What is said of a layer by its own kind, where a model's layers are not alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layouts.scene.labels import every, gpus, plural, times
from layouts.scene.scene import Words
from tracer.display import format_bytes
from tracer.model.layers import CompressedAttention, HeadAttention, LatentAttention, LinearAttention, Mamba2
from tracer.trip.kinds import index_query_values, kind_at

if TYPE_CHECKING:
    from layouts.words.context import Context
    from tracer.model.layers import Attention

_NAMES = {
    "gated_delta_net": "gated delta net", "kda": "Kimi delta attention", "lightning": "lightning attention",
    "mamba": "Mamba-1", "mamba2": "Mamba-2", "short_conv": "a short convolution",
}  # fmt: skip


def attention_of(context: Context) -> Attention | None:
    """The attention of the hop's layer; None where the layers are alike or it has none."""
    kind = kind_at(context.model, max(1, context.hop.layer))
    return None if kind is None else kind.attention


def heads_of(context: Context) -> int:
    """Query heads of the hop's layer, or heads of its mixer."""
    attention = attention_of(context)
    return context.model.need("heads", "split attention") if attention is None else attention.heads


def state_name(context: Context) -> str | None:
    """What a mixer with a state is called; None for attention to K/V."""
    attention = attention_of(context)
    if isinstance(attention, LinearAttention | Mamba2):
        return _NAMES[attention.type]
    return None


def written(context: Context) -> str:
    """What a TP rank adds to what it keeps of the sequence."""
    attention, tp = attention_of(context), context.size("tp")
    if isinstance(attention, LinearAttention | Mamba2):
        return f"the token into the state of its heads ({state_name(context)}), which keeps its size"
    if isinstance(attention, HeadAttention):
        if attention.shared_kv:
            return "no K/V: the layer reads that of an earlier one"
        text = f"K and V of {plural(max(1, attention.kv_heads // tp), 'KV head')} to its cache"
        return text + _window(attention)
    if isinstance(attention, CompressedAttention):
        ratio = attention.ratio
        entry = f"; one entry stands for {ratio:,} older tokens" if ratio else ""
        text = f"one vector of {attention.head_dim:,} values to its cache, of the last {attention.window:,}"
        return f"{text}{entry}"
    if isinstance(attention, LatentAttention):
        index = f", and an indexer's key of {attention.index_dim:,}" if index_query_values(attention) else ""
        return f"the token's latent of {attention.kv_values:,} values to its K/V cache{index}"
    if context.model.mla:
        return f"the token's latent of {context.model.kv_values_per_token:,} values to its K/V cache"
    own = max(1, context.model.need("kv_heads", "split K/V") // tp)
    return f"K and V of {plural(own, 'KV head')} to its cache"


def _window(attention: HeadAttention) -> str:
    if attention.window is None:
        return ""
    tokens = plural(attention.window, "token")
    return f", of the same {tokens}' chunk" if attention.type == "chunked" else f", of the last {tokens}"


def is_latent(context: Context) -> bool:
    """Whether the layer caches one vector per token, whole on every TP rank."""
    attention = attention_of(context)
    if attention is None:
        return context.model.mla
    return isinstance(attention, LatentAttention | CompressedAttention)


def head_gotcha(context: Context) -> str:
    """What cutting this layer's heads over TP costs."""
    attention, tp = attention_of(context), context.size("tp")
    if isinstance(attention, LinearAttention | Mamba2):
        return (
            f"There is no K/V here: each of {every(tp)} TP ranks keeps the state of its own heads, as large "
            "for a million tokens as for one."
        )
    if is_latent(context):
        return (
            f"MLA caches one latent a token, and it cannot be cut by heads: {every(tp)} TP ranks keep "
            "the whole of it. That is why MLA models prefer data-parallel attention."
        )
    kv_heads = getattr(attention, "kv_heads", context.model.kv_heads or 0)
    if kv_heads < tp:
        return (
            f"The model has {plural(kv_heads, 'KV head')} and {tp} TP ranks: each head is computed and "
            f"cached {times(tp // kv_heads)}."
        )
    return (
        f"TP must divide the heads: {kv_heads} KV heads over {tp} ranks is {kv_heads // tp} each, so "
        "the K/V cache is cut too and nothing is kept twice."
    )


def state_pass(context: Context) -> Words:
    """The state goes on to the CP ranks of later tokens."""
    name, moves = state_name(context) or "linear attention", context.hop.transfers
    ranks = sorted({t.dst for t in moves} - set(context.tp_group))
    why = (
        "Such a layer sums all earlier tokens up in one state of fixed size. The prompt is cut over CP "
        "ranks, so each rank needs the state that the ranks with the tokens before it ended with."
    )
    if not moves:
        return Words(
            "The state stays here",
            "Attention",
            f"The token is in the last piece of the prompt that {name} computes: its state goes nowhere.",
            why,
            "The step counts all the same: the ranks of earlier pieces hand theirs on in it.",
        )
    decode = context.scenario.decodes
    what = (
        f"The sequence's state comes from the rank of the token before: {plural(len(moves), 'transfer')} of "
        f"{context.each_bytes}."
        if decode
        else f"The state with this token in it is handed on, piece by piece of the prompt: "
        f"{plural(len(moves), 'transfer')} of {context.each_bytes}, "
        f"{format_bytes(context.hop.bytes)} in all."
    )
    return Words(
        f"Hand the state on to {gpus(ranks)}" if ranks else "Fetch the state",
        "Attention",
        what,
        why,
        "Unlike K/V it is as large for one token as for the whole prompt; the tokens of a piece share it.",
    )

"""The sizes of a model's main kind of attention, FFN and experts, from the kinds of its layers."""

from __future__ import annotations

from typing import Any

from tracer.model.layers import (
    CompressedAttention,
    DenseFfn,
    HeadAttention,
    LatentAttention,
    LayerKind,
    LinearAttention,
    Mamba2,
    MoeFfn,
)


def main_sizes(kinds: tuple[LayerKind, ...]) -> dict[str, Any]:
    """Fields of a spec by name: those of the main kind of attention, FFN and experts.

    Attention over all tokens is more main than a window, and K/V than a state.
    """
    found: dict[str, Any] = {"layers": len(kinds)}
    unique = list(dict.fromkeys(kinds))
    attention = [kind.attention for kind in unique if kind.attention is not None]
    order = (LatentAttention, HeadAttention, CompressedAttention, LinearAttention, Mamba2)
    if attention:
        found |= _attention_sizes(
            min(
                attention,
                key=lambda each: (order.index(type(each)), getattr(each, "window", None) is not None),
            )
        )
    dense = [kind.feed_forward for kind in unique if isinstance(kind.feed_forward, DenseFfn)]
    if dense:
        found["dense_hidden"] = max(each.width for each in dense)
    moe = [kind.feed_forward for kind in unique if isinstance(kind.feed_forward, MoeFfn)]
    if moe:
        one = moe[0]
        found |= {"experts": one.experts, "top_k": one.top_k, "expert_hidden": one.width}
        found["shared_gate"] = one.shared_gate
        if one.shared_width:
            found |= {"shared_hidden": one.shared_width, "shared_experts": 1}
        numbers = tuple(number for number, kind in enumerate(kinds, start=1) if not kind.is_moe)
        first = bool(numbers) and numbers[-1] == len(numbers)
        found["dense_layers"] = len(numbers) if first or not numbers else numbers
    return found


def _attention_sizes(main: object) -> dict[str, Any]:
    names: tuple[str, ...]
    if isinstance(main, HeadAttention):
        names = ("heads", "kv_heads", "head_dim", "v_head_dim", "qkv_bias", "out_bias", "qk_norm")
        return {name: getattr(main, name) for name in names}
    if isinstance(main, LatentAttention):
        names = ("heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        return {name: getattr(main, name) for name in names} | {"out_bias": main.bias}
    if isinstance(main, CompressedAttention):
        return {"heads": main.heads, "kv_heads": 1, "head_dim": main.head_dim, "v_head_dim": main.head_dim}
    if isinstance(main, LinearAttention):
        return {"heads": main.value_heads, "head_dim": main.key_dim, "v_head_dim": main.value_dim}
    if isinstance(main, Mamba2):
        return {"heads": main.heads, "head_dim": main.head_dim}
    return {}

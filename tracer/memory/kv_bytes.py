"""Bytes that a layer keeps of a token and of a sequence on one TP rank, by the layer's kind.

K/V formats: the elements of K, V or the latent in the scenario's K/V dtype. With sparse attention (DSA)
and FP8 K/V a position is a page of 656 bytes: 512 FP8 values with a FP32 scale for 128 of them, and the 64
rotary values in BF16 (vLLM ``fp8_ds_mla``; DeepSeek-V3.2). An indexer's key is always FP8, with a FP32
scale for 128 values: 132 bytes for 128.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.model.dtype import BYTES, FP8_BLOCK, Dtype
from tracer.model.layers import (
    AttentionType,
    CompressedAttention,
    HeadAttention,
    LatentAttention,
    LayerKind,
    LinearAttention,
    Mamba2,
)

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec

_SCALE_BYTES = BYTES[Dtype.FP32]


def _scales(values: int) -> int:
    """Bytes of one FP32 scale for each block of 128 values."""
    return -(-values // FP8_BLOCK) * _SCALE_BYTES


def index_bytes(kind: LayerKind) -> int:
    """Bytes of the indexer's key of one position (DeepSeek-V4: of one compressed entry)."""
    values = kind.attention.index_values if kind.attention else 0
    return values + _scales(values) if values else 0


def kv_bytes_of_layer(kind: LayerKind, dtype: str, tp: int = 1) -> int:
    """Bytes of one position (or entry) in a layer of a kind on one of ``tp`` ranks, its indexer's key apart.

    K/V heads are cut over TP, and a head is copied where there are fewer of them than ranks; a latent is
    whole on every rank.
    """
    attention, each = kind.attention, BYTES[dtype]
    if isinstance(attention, HeadAttention):
        heads = max(1, -(-attention.kv_heads // tp))
        return attention.kv_values // attention.kv_heads * heads * each
    if isinstance(attention, LatentAttention):
        if dtype == Dtype.FP8 and attention.type is AttentionType.DSA:
            rank = attention.kv_lora_rank
            return rank + _scales(rank) + attention.qk_rope_head_dim * BYTES[Dtype.BF16]
        return attention.kv_values * each
    if isinstance(attention, CompressedAttention):
        return attention.kv_values * each
    return 0


def state_bytes_of_layer(kind: LayerKind, dtype: str, tp: int = 1) -> int:
    """Bytes of a layer's state of one sequence on one of ``tp`` ranks: recurrent state and convolution.

    The recurrent state has its own dtype (the config's, else FP32), the convolution's last inputs that of
    the activations, ``dtype``. Both are cut by heads.
    """
    attention = kind.attention
    if not isinstance(attention, LinearAttention | Mamba2):
        return 0
    heads, own = attention.heads, max(1, -(-attention.heads // tp))
    state = attention.state_values * own // heads * attention.state_bytes_per_value
    return state + _conv_channels(attention, own, tp) * max(0, attention.conv - 1) * BYTES[dtype]


def _conv_channels(attention: LinearAttention | Mamba2, heads: int, tp: int) -> int:
    """Channels of the convolution on a rank with ``heads`` heads; keys, or B and C, are copied if few."""
    if isinstance(attention, Mamba2):
        if attention.type is AttentionType.MAMBA:
            return heads * attention.head_dim
        return heads * attention.head_dim + 2 * max(1, -(-attention.groups // tp)) * attention.state
    if not attention.conv:
        return 0
    if attention.type is AttentionType.SHORT_CONV:
        return heads * attention.value_dim
    keys = max(1, -(-attention.key_heads // tp)) * attention.key_dim
    return 2 * keys + heads * attention.value_dim


def is_bounded(kind: LayerKind) -> bool:
    """Whether what a layer keeps of a sequence stops growing: a window, a chunk, or a state."""
    attention = kind.attention
    if isinstance(attention, CompressedAttention):
        return not attention.ratio
    return attention is None or not kind.kv_values or getattr(attention, "window", None) is not None


def kv_bytes_per_token(model: ModelSpec, dtype: str, tp: int = 1) -> float | int:
    """Bytes that one more token adds to a long sequence on one of ``tp`` ranks, over all layers.

    A compressed layer adds one entry for ``ratio`` tokens.
    """
    whole, parts = 0, 0.0
    for kind, layers in model.kinds():
        attention = kind.attention
        if isinstance(attention, CompressedAttention):
            if attention.ratio:
                one = kv_bytes_of_layer(kind, dtype, tp) + index_bytes(kind)
                parts += len(layers) * one / attention.ratio
        elif not is_bounded(kind):
            whole += len(layers) * (kv_bytes_of_layer(kind, dtype, tp) + index_bytes(kind))
    return whole + parts if parts else whole


def sequence_bytes(model: ModelSpec, context: int, dtype: str, tp: int = 1) -> int:
    """Bytes of K/V that a sequence of ``context`` tokens keeps on one of ``tp`` ranks, states apart."""
    total = 0
    for kind, layers in model.kinds():
        attention = kind.attention
        one = kind.positions(context) * kv_bytes_of_layer(kind, dtype, tp)
        if isinstance(attention, CompressedAttention):
            one += attention.compressed(context) * index_bytes(kind)
        else:
            one += context * index_bytes(kind)
        total += one * len(layers)
    return total


def state_bytes_per_sequence(model: ModelSpec, dtype: str = Dtype.BF16, tp: int = 1) -> int:
    """Bytes of the states of one sequence on one of ``tp`` ranks, over all layers."""
    return sum(len(layers) * state_bytes_of_layer(kind, dtype, tp) for kind, layers in model.kinds())

"""Every weight of a model: its shape, how many there are, how many one token uses, and how TP cuts it.

Counted: embedding, position table, output head, attention with its indexer, linear-attention and Mamba-2
mixers, FFNs, routers, shared experts and their gates, norms, biases and sinks. Not counted: buffers that
are no parameters (a router's score correction), multi-token-prediction layers, and ``spec.left_out``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from tracer.model.layers import (
    AttentionType,
    CompressedAttention,
    DenseFfn,
    Extra,
    Gate,
    HeadAttention,
    LatentAttention,
    LayerKind,
    LinearAttention,
    Mamba2,
    MoeFfn,
    QkNorm,
)
from tracer.model.spec import ModelSpec

_WHY = "count the parameters"


class WeightPart(StrEnum):
    """A part of the model that is counted, and may be stored, apart from the others."""

    EMBEDDING = "embedding"
    LM_HEAD = "lm_head"
    ATTENTION = "attention"
    INDEXER = "indexer"
    LINEAR = "linear_attention"
    DENSE = "dense"
    ROUTER = "router"
    SHARED = "shared"
    EXPERTS = "experts"
    NORMS = "norms"
    BIASES = "biases"
    VISION = "vision"


class Cut(StrEnum):
    """How tensor parallelism cuts a weight; by heads, by the inner width of an FFN, or not at all."""

    WHOLE = "whole"
    HEAD_ROWS = "head_rows"
    KV_ROWS = "kv_rows"
    HEAD_COLUMNS = "head_columns"
    INNER_ROWS = "inner_rows"
    INNER_COLUMNS = "inner_columns"


class WeightMatrix(NamedTuple):
    """``copies`` matrices of one shape ``[rows, columns]`` (output, input) in the whole model.

    ``used`` is how many of them one token passes through; only routed experts use fewer than there are.
    ``kinds`` are the indices into ``spec.kinds`` of the layers that have it, none for weights outside the
    layers; ``per_layer`` is how many each such layer has. ``groups`` are the heads that its rows or
    columns belong to, where ``cut`` goes by heads.
    """

    part: WeightPart
    name: str
    rows: int
    columns: int
    copies: int
    used: int
    cut: Cut = Cut.WHOLE
    kinds: tuple[int, ...] = ()
    per_layer: int = 1
    groups: int = 1

    @property
    def elements(self) -> int:
        """Elements of one copy."""
        return self.rows * self.columns


def weight_matrices(spec: ModelSpec) -> tuple[WeightMatrix, ...]:
    """All weights of the model, in the order a token meets them within a part.

    A matrix that several kinds of layer have in the same shape is listed once.

    Raises:
        ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
    """
    hidden = spec.need("hidden", _WHY)
    found: dict[tuple[object, ...], WeightMatrix] = {}
    for index, (kind, layers) in enumerate(spec.kinds(_WHY)):
        for each in layer_matrices(kind, hidden):
            key = (each.part, each.name, each.rows, each.columns, each.cut, each.copies, each.used)
            here = each._replace(
                copies=each.copies * len(layers),
                used=each.used * len(layers),
                kinds=(index,),
                per_layer=each.copies,
            )
            old = found.get(key)
            found[key] = here if old is None else _together(old, here)
    matrices = [*_ends(spec), *found.values(), *_last_norm(spec)]
    order = list(WeightPart)
    return tuple(sorted(matrices, key=lambda each: order.index(each.part)))


def _together(one: WeightMatrix, other: WeightMatrix) -> WeightMatrix:
    """The same matrix in the layers of both."""
    kinds = one.kinds + other.kinds
    return one._replace(copies=one.copies + other.copies, used=one.used + other.used, kinds=kinds)


def layer_matrices(kind: LayerKind, hidden: int) -> Iterator[WeightMatrix]:
    """The weights of one layer of a kind; ``copies`` and ``used`` are those of the one layer."""
    if kind.attention is not None:
        yield from _attention(kind.attention, hidden)
        yield from _extras(kind.attention.extras)
    if isinstance(kind.feed_forward, DenseFfn):
        part = kind.feed_forward
        yield from ffn_matrices(WeightPart.DENSE, hidden, part.width, 1, 1, gated=part.gated)
        if part.bias:
            yield from _ffn_biases("dense", hidden, part.width, 1, 1, gated=part.gated)
    if isinstance(kind.feed_forward, MoeFfn):
        yield from _moe(kind.feed_forward, hidden)
        yield from _extras(kind.feed_forward.extras)
    if kind.norms:
        yield WeightMatrix(WeightPart.NORMS, "norm", 1, hidden, kind.norms, kind.norms)
        if kind.norm_bias:
            yield WeightMatrix(WeightPart.BIASES, "norm_bias", 1, hidden, kind.norms, kind.norms)
    yield from _extras(kind.extras)


def ffn_matrices(
    part: WeightPart, hidden: int, width: int, copies: int, used: int, *, gated: bool = True
) -> Iterator[WeightMatrix]:
    """The matrices of an FFN: ``[width, hidden]`` (twice where it is gated) and ``[hidden, width]``."""
    if gated:
        yield WeightMatrix(part, "gate", width, hidden, copies, used, Cut.INNER_ROWS)
    yield WeightMatrix(part, "up", width, hidden, copies, used, Cut.INNER_ROWS)
    yield WeightMatrix(part, "down", hidden, width, copies, used, Cut.INNER_COLUMNS)


def _ffn_biases(
    owner: str, hidden: int, width: int, copies: int, used: int, *, gated: bool
) -> Iterator[WeightMatrix]:
    """A bias for each matrix of an FFN."""
    for name in ("gate", "up") if gated else ("up",):
        yield _bias(f"{owner}_{name}_bias", width, copies, used, cut=Cut.INNER_COLUMNS)
    yield _bias(f"{owner}_down_bias", hidden, copies, used)


def _bias(
    name: str, width: int, copies: int = 1, used: int = 1, cut: Cut = Cut.WHOLE, groups: int = 1
) -> WeightMatrix:
    """A vector that is added, as a matrix of one row."""
    return WeightMatrix(WeightPart.BIASES, name, 1, width, copies, used, cut, groups=groups)


def _norm(name: str, width: int, cut: Cut = Cut.WHOLE, groups: int = 1) -> WeightMatrix:
    """A norm's weight, as a matrix of one row."""
    return WeightMatrix(WeightPart.NORMS, name, 1, width, 1, 1, cut, groups=groups)


def _extras(extras: tuple[Extra, ...]) -> Iterator[WeightMatrix]:
    """A family's own weights; whole on every rank."""
    for each in extras:
        yield WeightMatrix(WeightPart(each.part), each.name, each.rows, each.columns, 1, 1)


def _ends(spec: ModelSpec) -> Iterator[WeightMatrix]:
    """Embedding, position table and output head: one matrix where embedding and head are tied."""
    vocab, hidden = spec.need("vocab", _WHY), spec.need("hidden", _WHY)
    yield WeightMatrix(WeightPart.EMBEDDING, "embedding", vocab, hidden, 1, 1)
    if spec.positions:
        yield WeightMatrix(WeightPart.EMBEDDING, "positions", spec.positions, hidden, 1, 1)
    if not spec.tie_embeddings:
        yield WeightMatrix(WeightPart.LM_HEAD, "lm_head", vocab, hidden, 1, 1)
    if spec.head_bias:
        yield _bias("lm_head_bias", vocab)
    yield from _extras(spec.extras)
    if spec.vision_parameters:
        yield WeightMatrix(WeightPart.VISION, "vision", 1, spec.vision_parameters, 1, 0)


def _last_norm(spec: ModelSpec) -> Iterator[WeightMatrix]:
    """The norm before the output head."""
    if spec.final_norm:
        hidden = spec.need("hidden", _WHY)
        yield WeightMatrix(WeightPart.NORMS, "norm", 1, hidden, 1, 1)
        if spec.norm_bias:
            yield _bias("norm_bias", hidden)


def _attention(attention: object, hidden: int) -> Iterator[WeightMatrix]:
    """The weights of one layer's attention."""
    if isinstance(attention, HeadAttention):
        yield from _heads(attention, hidden)
    elif isinstance(attention, LatentAttention):
        yield from _latent(attention, hidden)
    elif isinstance(attention, CompressedAttention):
        yield from _compressed(attention, hidden)
    elif isinstance(attention, LinearAttention):
        yield from _linear(attention, hidden)
    elif isinstance(attention, Mamba2):
        yield from _mamba(attention, hidden)


def _attn(name: str, rows: int, columns: int, cut: Cut = Cut.WHOLE, groups: int = 1) -> WeightMatrix:
    return WeightMatrix(WeightPart.ATTENTION, name, rows, columns, 1, 1, cut, groups=groups)


def _heads(each: HeadAttention, hidden: int) -> Iterator[WeightMatrix]:
    """q, k, v and o of grouped-query attention, its biases, norms, sinks, gate and indexer."""
    heads, kv_heads = each.heads, each.kv_heads
    out = heads * each.v_head_dim
    if each.q_rank:
        yield _attn("q_a", each.q_rank, hidden)
        yield _attn("q_b", heads * each.head_dim, each.q_rank, Cut.HEAD_ROWS, heads)
        yield _norm("latent_norm", each.q_rank)
    else:
        yield _attn("q", heads * each.head_dim, hidden, Cut.HEAD_ROWS, heads)
    if not each.shared_kv:
        yield _attn("k", kv_heads * each.head_dim, hidden, Cut.KV_ROWS, kv_heads)
        if not each.keys_as_values:
            yield _attn("v", kv_heads * each.v_head_dim, hidden, Cut.KV_ROWS, kv_heads)
    yield _attn("o", hidden, out, Cut.HEAD_COLUMNS, heads)
    if each.gate is not Gate.NONE:
        rows = heads if each.gate is Gate.HEAD else out
        yield _attn("gate", rows, hidden, Cut.HEAD_ROWS, heads)
    if each.qkv_bias:
        yield _bias("q_bias", heads * each.head_dim, cut=Cut.HEAD_COLUMNS, groups=heads)
        if not each.shared_kv:
            yield _bias("k_bias", kv_heads * each.head_dim, cut=Cut.KV_ROWS, groups=kv_heads)
            yield _bias("v_bias", kv_heads * each.v_head_dim, cut=Cut.KV_ROWS, groups=kv_heads)
    if each.out_bias:
        yield _bias("o_bias", hidden)
    if each.sinks:
        yield _bias("sinks", heads, cut=Cut.HEAD_COLUMNS, groups=heads)
    if each.qk_norm is QkNorm.HEAD:
        yield _norm("q_norm", each.head_dim)
        if not each.shared_kv:
            yield _norm("k_norm", each.head_dim)
    if each.qk_norm is QkNorm.WIDTH:
        yield _norm("q_norm", heads * each.head_dim, Cut.HEAD_COLUMNS, heads)
        yield _norm("k_norm", kv_heads * each.head_dim, Cut.KV_ROWS, kv_heads)
    if each.index_heads:
        yield WeightMatrix(WeightPart.INDEXER, "q", each.index_heads * each.index_dim, hidden, 1, 1)
        yield WeightMatrix(WeightPart.INDEXER, "k", each.index_dim, hidden, 1, 1)
        yield _norm("index_q_norm", each.index_dim)
        yield _norm("index_k_norm", each.index_dim)


def _latent(each: LatentAttention, hidden: int) -> Iterator[WeightMatrix]:
    """MLA: q in two steps through its latent (or in one), K/V through theirs, o; and DSA's indexer."""
    heads, latent, rope, v_dim = each.heads, each.kv_lora_rank, each.qk_rope_head_dim, each.v_head_dim
    q_rows, q_latent = heads * each.qk_head_dim, each.q_lora_rank
    if q_latent:
        yield _attn("q_a", q_latent, hidden)
        yield _attn("q_b", q_rows, q_latent, Cut.HEAD_ROWS, heads)
        yield _norm("latent_norm", q_latent)
    else:
        yield _attn("q", q_rows, hidden, Cut.HEAD_ROWS, heads)
    yield _attn("kv_a", latent + rope, hidden)
    yield _norm("latent_norm", latent)
    yield _attn("kv_b", heads * (each.qk_nope_head_dim + v_dim), latent, Cut.HEAD_ROWS, heads)
    yield _attn("o", hidden, heads * v_dim, Cut.HEAD_COLUMNS, heads)
    if each.gate is not Gate.NONE:
        rows = heads if each.gate is Gate.HEAD else heads * v_dim
        yield _attn("gate", rows, hidden, Cut.HEAD_ROWS, heads)
    if each.bias:
        if q_latent:
            yield _bias("q_a_bias", q_latent)
        yield _bias("kv_a_bias", latent + rope)
        yield _bias("o_bias", hidden)
    if each.index_heads and not each.index_shared:
        rows, width = each.index_heads * each.index_dim, q_latent or hidden
        yield WeightMatrix(WeightPart.INDEXER, "wq_b", rows, width, 1, 1)
        yield WeightMatrix(WeightPart.INDEXER, "wk", each.index_dim, hidden, 1, 1)
        yield WeightMatrix(WeightPart.INDEXER, "weights_proj", each.index_heads, hidden, 1, 1)
        yield _norm("index_k_norm", each.index_dim)
        yield _bias("index_k_norm_bias", each.index_dim)


def _compressed(each: CompressedAttention, hidden: int) -> Iterator[WeightMatrix]:
    """DeepSeek-V4: q through a latent, one K/V head, grouped output; compressor and indexer by ratio.

    Source: transformers 5.24.0 ``models/deepseek_v4/modeling_deepseek_v4.py``.
    """
    heads, dim, q_latent = each.heads, each.head_dim, each.q_lora_rank
    yield _attn("q_a", q_latent, hidden)
    yield _norm("latent_norm", q_latent)
    yield _attn("q_b", heads * dim, q_latent, Cut.HEAD_ROWS, heads)
    yield _attn("kv", dim, hidden)
    yield _norm("kv_norm", dim)
    yield _attn("o_a", each.o_groups * each.o_lora_rank, heads * dim // each.o_groups, Cut.HEAD_ROWS, heads)
    yield _attn("o_b", hidden, each.o_groups * each.o_lora_rank, Cut.HEAD_COLUMNS, each.o_groups)
    yield _bias("sinks", heads, cut=Cut.HEAD_COLUMNS, groups=heads)
    if not each.ratio:
        return
    series = 2 if each.index_heads else 1  # the finely compressed layers overlap two series of entries
    yield _attn("compress_kv", series * dim, hidden)
    yield _attn("compress_gate", series * dim, hidden)
    yield _attn("compress_positions", each.ratio, series * dim)
    yield _norm("compress_norm", dim)
    if each.index_heads:
        width = each.index_dim
        for name, rows, columns in (
            ("wq_b", each.index_heads * width, q_latent), ("compress_kv", series * width, hidden),
            ("compress_gate", series * width, hidden), ("compress_positions", each.ratio, series * width),
            ("weights_proj", each.index_heads, hidden),
        ):  # fmt: skip
            yield WeightMatrix(WeightPart.INDEXER, name, rows, columns, 1, 1)
        yield _norm("index_k_norm", width)


def _mix(name: str, rows: int, columns: int, cut: Cut = Cut.WHOLE, groups: int = 1) -> WeightMatrix:
    return WeightMatrix(WeightPart.LINEAR, name, rows, columns, 1, 1, cut, groups=groups)


def _linear(each: LinearAttention, hidden: int) -> Iterator[WeightMatrix]:
    """Projections, convolution, decay and output of linear attention.

    Sources: transformers 5.24.0 ``qwen3_next``, ``kimi_linear`` and ``minimax`` modelling files.
    """
    keys, values = each.key_heads * each.key_dim, each.value_heads * each.value_dim
    heads, k_heads = each.value_heads, each.key_heads
    if each.type is AttentionType.SHORT_CONV:
        yield from _short_conv(each, hidden)
        return
    yield _mix("q", keys, hidden, Cut.HEAD_ROWS, k_heads)
    yield _mix("k", keys, hidden, Cut.HEAD_ROWS, k_heads)
    yield _mix("v", values, hidden, Cut.HEAD_ROWS, heads)
    yield _mix("o", hidden, values, Cut.HEAD_COLUMNS, heads)
    if each.type is AttentionType.LIGHTNING:
        yield _mix("gate", values, hidden, Cut.HEAD_ROWS, heads)
        yield _norm("linear_norm", values, Cut.HEAD_COLUMNS, heads)
        if each.qk_norm is QkNorm.HEAD:
            yield _norm("q_norm", each.key_dim)
            yield _norm("k_norm", each.key_dim)
        return
    if each.conv:
        yield _mix("conv", each.conv_channels, each.conv, Cut.HEAD_ROWS, k_heads)
    yield _mix("b", heads, hidden, Cut.HEAD_ROWS, heads)
    yield _bias("A_log", heads, cut=Cut.HEAD_COLUMNS, groups=heads)
    yield _norm("linear_norm", each.value_dim)
    decay = values if each.type is AttentionType.KDA else heads
    yield _bias("dt_bias", decay, cut=Cut.HEAD_COLUMNS, groups=heads)
    if each.type is AttentionType.GATED_DELTA_NET:
        yield _mix("a", heads, hidden, Cut.HEAD_ROWS, heads)
        yield _mix("z", values, hidden, Cut.HEAD_ROWS, heads)
        return
    for name, full in (("f", each.full_rank_decay), ("g", each.full_rank_gate)):
        if full:
            yield _mix(name, values, hidden, Cut.HEAD_ROWS, heads)
        else:
            yield _mix(f"{name}_a", each.value_dim, hidden)
            yield _mix(f"{name}_b", values, each.value_dim, Cut.HEAD_ROWS, heads)


def _short_conv(each: LinearAttention, hidden: int) -> Iterator[WeightMatrix]:
    """LFM2's gated short convolution: one projection to three rows, a convolution, one back.

    Source: transformers 5.24.0 ``models/lfm2/modeling_lfm2.py``.
    """
    heads, width = each.value_heads, each.conv_channels
    yield _mix("in", 3 * width, hidden, Cut.HEAD_ROWS, heads)
    yield _mix("conv", width, each.conv, Cut.HEAD_ROWS, heads)
    yield _mix("o", hidden, width, Cut.HEAD_COLUMNS, heads)
    if each.bias:
        yield _bias("in_bias", 3 * width, cut=Cut.HEAD_COLUMNS, groups=heads)
        yield _bias("conv_bias", width, cut=Cut.HEAD_COLUMNS, groups=heads)
        yield _bias("o_bias", hidden)


def _mamba(each: Mamba2, hidden: int) -> Iterator[WeightMatrix]:
    """In and out projections, convolution, decay and norm of a Mamba-2 mixer.

    Source: transformers 5.24.0 ``models/nemotron_h/modeling_nemotron_h.py``.
    """
    if each.type is AttentionType.MAMBA:
        yield from _mamba1(each, hidden)
        return
    heads, inner = each.heads, each.inner
    rows = inner + each.conv_channels + heads
    yield _mix("in", rows, hidden, Cut.HEAD_ROWS, heads)
    yield _mix("conv", each.conv_channels, each.conv, Cut.HEAD_ROWS, heads)
    yield _mix("o", hidden, inner, Cut.HEAD_COLUMNS, heads)
    if each.norm:
        yield _norm("linear_norm", inner, Cut.HEAD_COLUMNS, heads)
    for name in ("A_log", "dt_bias", "D"):
        yield _bias(name, heads, cut=Cut.HEAD_COLUMNS, groups=heads)
    if each.conv_bias:
        yield _bias("conv_bias", each.conv_channels, cut=Cut.HEAD_COLUMNS, groups=heads)
    if each.bias:
        yield _bias("in_bias", rows, cut=Cut.HEAD_COLUMNS, groups=heads)
        yield _bias("o_bias", hidden)


def _mamba1(each: Mamba2, hidden: int) -> Iterator[WeightMatrix]:
    """A Mamba-1 mixer: projections in and out, convolution, step, B and C from its row, decay per state.

    Source: transformers 5.24.0 ``models/jamba/modeling_jamba.py``.
    """
    channels, inner = each.heads, each.inner
    yield _mix("in", 2 * inner, hidden, Cut.HEAD_ROWS, channels)
    yield _mix("conv", inner, each.conv, Cut.HEAD_ROWS, channels)
    yield _mix("x", each.dt_rank + 2 * each.state, inner, Cut.HEAD_COLUMNS, channels)
    yield _mix("dt", inner, each.dt_rank, Cut.HEAD_ROWS, channels)
    yield _mix("A_log", inner, each.state, Cut.HEAD_ROWS, channels)
    yield _mix("o", hidden, inner, Cut.HEAD_COLUMNS, channels)
    if each.norm:
        yield _norm("dt_norm", each.dt_rank)
        yield _norm("b_norm", each.state)
        yield _norm("c_norm", each.state)
    for name in ("dt_bias", "D", *(("conv_bias",) if each.conv_bias else ())):
        yield _bias(name, inner, cut=Cut.HEAD_COLUMNS, groups=channels)
    if each.bias:
        yield _bias("in_bias", 2 * inner, cut=Cut.HEAD_COLUMNS, groups=channels)
        yield _bias("o_bias", hidden)


def _moe(each: MoeFfn, hidden: int) -> Iterator[WeightMatrix]:
    """Router (with the gate of a gated shared expert), shared and routed experts of one layer."""
    rows = each.experts + each.zero_experts
    yield WeightMatrix(WeightPart.ROUTER, "router", rows, each.router_hidden or hidden, 1, 1)
    if each.router_bias:
        yield _bias("router_bias", rows)
    if each.shared_gate:
        yield WeightMatrix(WeightPart.ROUTER, "shared_gate", 1, hidden, 1, 1)
    if each.shared_width:
        yield from ffn_matrices(WeightPart.SHARED, hidden, each.shared_width, 1, 1, gated=each.gated)
    size = each.latent or hidden
    if each.latent:
        yield WeightMatrix(WeightPart.ROUTER, "latent_down", each.latent, hidden, 1, 1)
        yield WeightMatrix(WeightPart.ROUTER, "latent_up", hidden, each.latent, 1, 1)
    used = min(each.top_k, each.experts)
    yield from ffn_matrices(WeightPart.EXPERTS, size, each.width, each.experts, used, gated=each.gated)
    if each.bias:
        yield from _ffn_biases("expert", size, each.width, each.experts, used, gated=each.gated)

"""Layers with parts of their own beside attention and FFN: a second mixer, convolutions, small projections.

Sources: the modelling files of transformers 5.24.0 named after each family.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.parts import (
    SLIDING,
    dense,
    every_token,
    heads,
    hidden_of,
    latent,
    layer,
    layer_count,
    layer_types,
    listed,
    mamba2,
    moe,
    shared_times,
    state_bytes,
)
from tracer.model.configs.routing import routing
from tracer.model.configs.special import gemma4_layer
from tracer.model.layers import (
    AttentionType,
    DenseFfn,
    Extra,
    ExtraPart,
    FeedForward,
    HeadAttention,
    LayerKind,
    Mamba2,
    MoeFfn,
    QkNorm,
)
from tracer.model.router_kind import RouterKind

# Command A with experts


def cohere2_moe_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Cohere's mixture: one norm per layer; dense layers first, with a width and windows of their own."""
    first = keys.whole("first_k_dense_replace")
    if index < first:
        step = keys.whole("prefix_dense_sliding_window_pattern", 1) or 1
        place = index
    else:
        step, place = keys.whole("sliding_window_pattern", 4) or 4, index - first
    window = keys.size("sliding_window") if (place + 1) % step else None
    by_step = (AttentionType.FULL if window is None else SLIDING), window
    see = listed() if layer_types(keys) else (lambda keys, index: by_step)
    attend = heads(
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        kv_needed=False,
        head_dim_needed=True,
        windows=see,
    )
    feed = moe(
        experts=("num_experts", "num_local_experts"),
        width=("intermediate_size",),
        dense=dense(width=keys.first("prefix_dense_intermediate_size", "intermediate_size")),
        shared=shared_times,
    )
    return layer(attend, feed, norms=1)(keys, index)


def cohere2_moe_ends(keys: ConfigKeys) -> dict[str, Any]:
    """The best logits first, then softmax or sigmoid over them."""
    scores = {"softmax": RouterKind.TOPK_SOFTMAX, "sigmoid": RouterKind.TOPK_SIGMOID}
    key = "expert_selection_fn"
    return {
        "router": keys.word(key, scores) if keys.has(key) else RouterKind.TOPK_SOFTMAX,
        "renormalise": keys.switch("norm_topk_prob", True),
        "shared_experts": keys.whole("num_shared_experts"),
    }


# HyperCLOVA X, A.X K1


def hyperclovax_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """A Llama whose attention and FFN may have a norm after them, too."""
    attend = heads(qkv_bias="attention_bias", out_bias="attention_bias")
    norms = 4 if keys.switch("use_post_norm", True) else 2
    return layer(attend, dense(bias="mlp_bias"), norms=norms)(keys, index)


def axk1_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """DeepSeek-V3's layer, with a norm after the experts."""
    feed = moe(dense=dense(width="intermediate_size"), shared=shared_times)(keys, index)
    norms = 3 if isinstance(feed, MoeFfn) else 2
    return LayerKind(attention=latent()(keys, index), feed_forward=feed, norms=norms)


# Gemma


def gemma4_unified_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Gemma 4 without experts and without embeddings per layer; its last layer is full in any case."""
    return gemma4_layer(keys.once("gemma4_unified", lambda: _gemma4_unified(keys)), index)


def _gemma4_unified(keys: ConfigKeys) -> ConfigKeys:
    if not keys.has("per_layer_config") and not keys.has("global_head_dim"):
        keys = keys.defaults({"global_head_dim": 512})
    words = keys.words("layer_types")
    if words and layer_types(keys)[-1] != "full":
        count = layer_count(keys)
        words = (*words[: count - 1], "full_attention")
        keys.warn(f"{keys.field('layer_types')}: the model class makes the last layer a full one")
        keys = ConfigKeys(keys.table | {"layer_types": list(words)}, keys.path, keys.warnings)
    return keys


def gemma3n_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Gemma 3n: windows, shared K/V in the last layers, AltUp, LAuReL and an input embedded per layer."""
    hidden, layers = hidden_of(keys), layer_count(keys)
    rank, streams = keys.size("laurel_rank"), keys.size("altup_num_inputs", high=64)
    per_layer = keys.size("hidden_size_per_layer_input")
    attend = heads(
        head_dim_needed=True,
        qk_norm=QkNorm.HEAD,
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        windows=listed(every=5),
    )
    attention = attend(keys, index)
    assert isinstance(attention, HeadAttention)
    shared = keys.size("num_kv_shared_layers", low=0, high=layers - 1)
    attention = replace(attention, shared_kv=index >= layers - shared)
    sizes = keys
    if isinstance(keys.table.get("intermediate_size"), list | tuple):
        width = keys.per_layer("intermediate_size", layers)[index]
        sizes = ConfigKeys({"intermediate_size": width}, keys.path, keys.warnings)
    extras = tuple(
        Extra(part, name, rows, columns)
        for part, name, rows, columns in (
            (ExtraPart.EMBEDDING, "layer_input_gate", per_layer, hidden),
            (ExtraPart.EMBEDDING, "layer_input_projection", hidden, per_layer),
            (ExtraPart.NORMS, "layer_input_norm", 1, hidden),
            (ExtraPart.ATTENTION, "laurel_left", rank, hidden),
            (ExtraPart.ATTENTION, "laurel_right", hidden, rank),
            (ExtraPart.NORMS, "laurel_norm", 1, hidden),
            (ExtraPart.ATTENTION, "altup_scale", 1, hidden),
            (ExtraPart.ATTENTION, "altup_correction", streams, streams),
            (ExtraPart.ATTENTION, "altup_prediction", streams**2, streams),
            (ExtraPart.ATTENTION, "altup_router", streams, hidden),
            (ExtraPart.NORMS, "altup_norm", 1, hidden),
        )
    )
    return LayerKind(attention=attention, feed_forward=dense()(sizes, index), norms=4, extras=extras)


def gemma3n_ends(keys: ConfigKeys) -> dict[str, Any]:
    """Embeddings per layer, and the projections of AltUp's streams before and after the layers."""
    hidden, per_layer = hidden_of(keys), keys.size("hidden_size_per_layer_input")
    wide, streams = per_layer * layer_count(keys), keys.size("altup_num_inputs", high=64) - 1
    vocab = keys.size(keys.first("vocab_size_per_layer_input", "vocab_size"))
    keys.warn("the sparsity of the first FFNs' activations is not modelled: every weight counts as used")
    found = [
        Extra(ExtraPart.EMBEDDING, "embedding_per_layer", vocab, wide),
        Extra(ExtraPart.EMBEDDING, "per_layer_projection", wide, hidden),
        Extra(ExtraPart.NORMS, "per_layer_norm", 1, per_layer),
    ]
    if streams:
        found += [
            Extra(ExtraPart.EMBEDDING, "altup_projections", streams * hidden, hidden),
            Extra(ExtraPart.EMBEDDING, "altup_unembed_projections", streams * hidden, hidden),
        ]
    return {"extras": tuple(found)}


# Falcon-H1


def falcon_h1_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Falcon-H1: Mamba-2 and attention side by side on one normed row, then an FFN.

    It reads as two layers: the mixer with the shared norm, then attention and FFN with the FFN's norm.
    """
    if index % 2:
        attend = heads(
            qkv_bias="attention_bias", out_bias="attention_bias", kv_needed=False, windows=every_token
        )
        return layer(attend, dense(bias="mlp_bias"), norms=1)(keys, index // 2)
    return LayerKind(attention=_falcon_mixer(keys, index // 2), norms=1)


def _falcon_mixer(keys: ConfigKeys, index: int) -> Mamba2:
    """A Mamba-2 mixer whose inner width ``mamba_d_ssm`` states, and whose two projections' biases differ."""
    count = keys.size("mamba_n_heads")
    inner = keys.optional_size("mamba_d_ssm") or (keys.whole("mamba_expand", 2) or 2) * hidden_of(keys)
    size = inner // count if keys.table.get("mamba_d_head") in (None, "auto") else keys.size("mamba_d_head")
    if size * count != inner:
        rule, name = f"times the head size {size} must be the inner width {inner}", "mamba_n_heads"
        raise ConfigError(keys.field(name), count, rule, "take both from one config.json")
    mixer = mamba2(ConfigKeys(keys.table | {"mamba_d_head": size}, keys.path, keys.warnings), index)
    assert isinstance(mixer, Mamba2)
    into, out = keys.switch("mamba_proj_bias"), keys.switch("projectors_bias")
    extras: tuple[Extra, ...] = ()
    if into != out:
        name, width = (
            ("in_bias", inner + mixer.conv_channels + count) if into else ("o_bias", hidden_of(keys))
        )
        extras = (Extra(ExtraPart.ATTENTION, name, 1, width),)
    return replace(mixer, norm=keys.switch("mamba_rms_norm"), bias=into and out, extras=extras)


def falcon_h1_ends(keys: ConfigKeys) -> dict[str, Any]:
    """Nothing of its own but how it is read."""
    keys.warn(
        "each Falcon-H1 layer reads as two: its Mamba-2 mixer, then attention and FFN; they run side by side"
    )
    return {}


# Jamba


def jamba_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Jamba: Mamba-1, or attention in each nth layer; experts in each nth, a dense FFN in the others."""
    mixer = jamba_mixer if not _at(keys, index, "attn_layer", 8, 4) else heads(windows=every_token)
    experts, width = keys.size("num_experts"), keys.size("intermediate_size")
    feed: FeedForward = DenseFfn(width=width)
    if experts > 1 and _at(keys, index, "expert_layer", 2, 1):
        feed = MoeFfn(experts=experts, top_k=keys.size("num_experts_per_tok"), width=width)
    return LayerKind(attention=mixer(keys, index), feed_forward=feed)


def _at(keys: ConfigKeys, index: int, name: str, period: int, offset: int) -> bool:
    """Whether a layer is one of those that a period and an offset name."""
    step = keys.size(f"{name}_period") if keys.has(f"{name}_period") else period
    start = keys.whole(f"{name}_offset", offset)
    if start >= step:
        rule = f"must be below {name}_period={step}"
        raise ConfigError(keys.field(f"{name}_offset"), start, rule, f"try {step - 1}")
    return index % step == start


def jamba_mixer(keys: ConfigKeys, index: int) -> Mamba2:
    """A Mamba-1 mixer with norms on step, B and C."""
    hidden = hidden_of(keys)
    stated = keys.table.get("mamba_dt_rank", "auto")
    return Mamba2(
        type=AttentionType.MAMBA,
        heads=(keys.whole("mamba_expand", 2) or 2) * hidden,
        head_dim=1,
        state=keys.size("mamba_d_state"),
        groups=1,
        conv=keys.size("mamba_d_conv"),
        conv_bias=keys.switch("mamba_conv_bias", True),
        bias=keys.switch("mamba_proj_bias"),
        dt_rank=-(-hidden // 16) if stated in (None, "auto") else keys.size("mamba_dt_rank"),
        state_bytes_per_value=state_bytes(keys),
    )


def jamba_ends(keys: ConfigKeys) -> dict[str, Any]:
    """Softmax scores that are not renormalised."""
    keys.warn("under TP a Mamba-1 mixer also sums its step, B and C over the ranks: that sum is not counted")
    return {"router": RouterKind.SOFTMAX_TOPK, "renormalise": False}


# ZAYA1


def zaya_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """ZAYA1: convolutions over queries and keys (CCA), a router with a hidden layer, scaled residuals."""
    kinds = layer_types(keys, frozenset({"hybrid", "hybrid_sliding", "full", "sliding"}))
    sliding = bool(kinds) and kinds[index] in ("hybrid_sliding", "sliding")
    window = keys.size("sliding_window") if sliding else None
    see = (SLIDING if sliding else AttentionType.FULL), window
    attend = heads(
        head_dim_needed=True,
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        windows=lambda keys, index: see,
    )
    attention = attend(keys, index)
    assert isinstance(attention, HeadAttention)
    size = attention.head_dim
    channels = (attention.heads + attention.kv_heads) * size
    hidden, narrow = hidden_of(keys), keys.size("router_hidden_size")
    attention = replace(
        attention,
        extras=(
            Extra(ExtraPart.ATTENTION, "conv_depthwise", channels, keys.size("cca_time0")),
            Extra(ExtraPart.ATTENTION, "conv_grouped", channels, size * keys.size("cca_time1")),
            Extra(ExtraPart.ATTENTION, "conv_biases", 2, channels),
            Extra(ExtraPart.NORMS, "key_temperature", 1, attention.kv_heads),
        ),
    )
    router = [
        Extra(ExtraPart.ROUTER, "router_down", narrow, hidden),
        Extra(ExtraPart.ROUTER, "router_hidden", 2 * narrow, narrow),
        Extra(ExtraPart.ROUTER, "router_biases", 3, narrow),
        Extra(ExtraPart.NORMS, "router_norm", 1, narrow),
    ]
    if index:
        router.append(Extra(ExtraPart.ROUTER, "router_states_scale", 1, narrow))
    feed = MoeFfn(
        experts=keys.size("num_experts"),
        top_k=keys.size("num_experts_per_tok"),
        width=keys.size("moe_intermediate_size"),
        zero_experts=1,
        router_hidden=narrow,
        extras=tuple(router),
    )
    scales = (Extra(ExtraPart.NORMS, "residual_scales", 8, hidden),)
    return LayerKind(attention=attention, feed_forward=feed, extras=scales)


def zaya_ends(keys: ConfigKeys) -> dict[str, Any]:
    """Softmax scores over the experts and one that skips; scale and bias of the first row."""
    keys.warn(
        "ZAYA1's convolutions over queries and keys, and its delayed values, keep a few inputs per sequence "
        "that no state counts"
    )
    keys.warn("the expert that skips has no weights; how often it is picked is not modelled")
    scales = (Extra(ExtraPart.NORMS, "input_scales", 2, hidden_of(keys)),)
    routed = routing(RouterKind.SOFTMAX_TOPK, shared_experts=0)(keys)
    return routed | {"extras": scales, "head_bias": keys.switch("lm_head_bias")}

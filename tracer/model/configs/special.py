"""Layers of families that state them in ways of their own.

Sources: each model's config.json, and the modelling files of transformers 5.24.0 named after the family.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.parts import (
    LAYER_TYPES,
    Attend,
    compressed,
    delta_net,
    dense,
    every_token,
    head_size,
    heads,
    heads_of,
    hidden_of,
    is_on,
    kda,
    latent,
    layer,
    layer_count,
    layer_types,
    lightning,
    mamba2,
    moe,
    shared_key,
    shared_times,
    short_conv,
)
from tracer.model.configs.routing import routing
from tracer.model.layers import (
    Attention,
    AttentionType,
    DenseFfn,
    Extra,
    ExtraPart,
    FeedForward,
    Gate,
    HeadAttention,
    LayerKind,
    LinearAttention,
    MoeFfn,
    QkNorm,
)
from tracer.model.router_kind import RouterKind

_FULL_OR_LINEAR = frozenset({"full", "linear"})


def hybrid(linear: Attend, full: Attend) -> Attend:
    """``layer_types`` says which layers are linear; where it is absent, each nth is full."""

    def read(keys: ConfigKeys, index: int) -> Attention | None:
        kinds = layer_types(keys, _FULL_OR_LINEAR)
        if kinds:
            return (full if kinds[index] == "full" else linear)(keys, index)
        step = keys.whole("full_attention_interval", 4) or 4
        return (full if (index + 1) % step == 0 else linear)(keys, index)

    return read


# Gemma-4


def gemma4_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Windows and full layers of different head sizes, shared K/V, a MoE block beside the dense FFN."""
    kinds = layer_types(keys)
    if not kinds:
        step = keys.whole("sliding_window_pattern", 6) or 6
        sliding = (index + 1) % step != 0
    else:
        sliding = kinds[index] == "sliding"
    attention = _gemma4_attention(keys, index, sliding=sliding)
    width = keys.size("intermediate_size") * (
        2 if attention.shared_kv and keys.switch("use_double_wide_mlp") else 1
    )
    hidden, per_layer = hidden_of(keys), keys.whole("hidden_size_per_layer_input")
    extras: tuple[Extra, ...] = ()
    if per_layer:
        extras = (
            Extra(ExtraPart.EMBEDDING, "layer_input_gate", per_layer, hidden),
            Extra(ExtraPart.EMBEDDING, "layer_input_projection", hidden, per_layer),
            Extra(ExtraPart.NORMS, "layer_input_norm", 1, hidden),
        )
    if not keys.switch("enable_moe_block"):
        return LayerKind(attention=attention, feed_forward=DenseFfn(width=width), norms=4, extras=extras)
    experts = keys.size(keys.first("num_experts", "num_local_experts"))
    router = (
        Extra(ExtraPart.ROUTER, "router_scale", 1, hidden),
        Extra(ExtraPart.ROUTER, "expert_scale", 1, experts),
    )
    top_k = keys.first("top_k_experts", "num_experts_per_tok")
    key = keys.first("moe_intermediate_size", "expert_intermediate_size")
    feed = MoeFfn(
        experts=experts, top_k=keys.size(top_k), width=keys.size(key), shared_width=width, extras=router
    )
    return LayerKind(attention=attention, feed_forward=feed, norms=7, extras=extras)


def _gemma4_attention(keys: ConfigKeys, index: int, *, sliding: bool) -> HeadAttention:
    layers, count = layer_count(keys), heads_of(keys)
    own: dict[str, Any] = {}
    if keys.has("per_layer_config"):
        table = keys.nested("per_layer_config")
        for name in (str(index), f"{index:02d}", f"{index:03d}"):
            if table.has(name):
                one = table.nested(name)
                own = {key: one.size(key) for key in ("head_dim", "num_key_value_heads") if one.has(key)}
    size, kv_heads = keys.size("head_dim"), keys.size("num_key_value_heads")
    alike = keys.switch("attention_k_eq_v") and not sliding
    if not sliding:
        size = keys.optional_size("global_head_dim") or size
        if alike:
            kv_heads = keys.optional_size("num_global_key_value_heads") or kv_heads
    size, kv_heads = own.get("head_dim", size), own.get("num_key_value_heads", kv_heads)
    bias = keys.switch("attention_bias")
    return HeadAttention(
        type=AttentionType.SLIDING if sliding else AttentionType.FULL,
        heads=count,
        kv_heads=kv_heads,
        head_dim=size,
        v_head_dim=size,
        window=keys.size("sliding_window") if sliding else None,
        qkv_bias=bias,
        out_bias=bias,
        qk_norm=QkNorm.HEAD,
        shared_kv=index >= layers - keys.whole("num_kv_shared_layers"),
        keys_as_values=alike,
    )


def gemma4_ends(keys: ConfigKeys) -> dict[str, Any]:
    """Softmax routing, one dense FFN beside the experts, and the embeddings per layer."""
    found: dict[str, Any] = {}
    if keys.switch("enable_moe_block"):
        found = {"router": RouterKind.SOFTMAX_TOPK, "renormalise": True, "shared_experts": 1}
    per_layer = keys.whole("hidden_size_per_layer_input")
    if per_layer:
        hidden, wide = hidden_of(keys), per_layer * layer_count(keys)
        vocab = keys.size(keys.first("vocab_size_per_layer_input", "vocab_size"))
        found["extras"] = (
            Extra(ExtraPart.EMBEDDING, "embedding_per_layer", vocab, wide),
            Extra(ExtraPart.EMBEDDING, "per_layer_projection", wide, hidden),
            Extra(ExtraPart.NORMS, "per_layer_norm", 1, per_layer),
        )
    return found


# GPT-2, Falcon, Phi-MoE


def gpt2_ends(keys: ConfigKeys) -> dict[str, Any]:
    """A learned position table, and LayerNorm with biases."""
    return {"positions": keys.size(keys.first("n_positions", "n_ctx")), "norm_bias": True}


def falcon_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """One K/V head (multi-query), or groups in the new decoder; norms by how the two parts run."""
    hidden, count = hidden_of(keys), heads_of(keys)
    new, parallel = keys.switch("new_decoder_architecture"), keys.switch("parallel_attn", True)
    if hidden % count:
        rule = f"must divide hidden_size={hidden}"
        raise ConfigError(keys.field("num_attention_heads"), count, rule, "take both from one config.json")
    kv_heads = keys.size("num_kv_heads") if new else 1 if keys.switch("multi_query", True) else count
    bias, size = keys.switch("bias"), hidden // count
    norms = keys.whole("num_ln_in_parallel_attn", 2 if new else 1) if parallel else 2
    return LayerKind(
        attention=HeadAttention(
            type=AttentionType.FULL, heads=count, kv_heads=kv_heads, head_dim=size, v_head_dim=size,
            qkv_bias=bias, out_bias=bias,
        ),
        feed_forward=dense_plain(keys, 4 * hidden, bias=bias),
        norms=norms,
        norm_bias=True,
    )  # fmt: skip


def dense_plain(keys: ConfigKeys, default: int, *, bias: bool) -> DenseFfn:
    """A plain FFN of the width a key states, or of ``default``."""
    key = keys.first("ffn_hidden_size", "intermediate_size")
    return DenseFfn(width=keys.size(key) if keys.has(key) else default, gated=False, bias=bias)


def phimoe_ends(keys: ConfigKeys) -> dict[str, Any]:
    """LayerNorm with biases, and perhaps one on the output head; its router masks and samples twice."""
    keys.warn("the router (sparsemixer) is counted; how it picks is not modelled")
    return {"norm_bias": True, "head_bias": keys.switch("lm_head_bias")}


# MiniMax


def minimax_norm(keys: ConfigKeys) -> QkNorm:
    """q/k norms as wide as all heads ("per_layer"), or one head."""
    if not keys.switch("use_qk_norm", True):
        return QkNorm.NONE
    if not keys.has("qk_norm_type"):
        return QkNorm.WIDTH
    return keys.word("qk_norm_type", {"per_layer": QkNorm.WIDTH, "per_head": QkNorm.HEAD})


def minimax_m3_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """MiniMax-M3: an indexer picks blocks of keys in most layers; dense layers first."""
    attention = heads(head_dim_needed=True, qk_norm=QkNorm.HEAD, windows=every_token)(keys, index)
    assert isinstance(attention, HeadAttention)
    if keys.switch("attention_output_gate"):
        attention = replace(attention, gate=Gate.ELEMENT)
    sparse = keys.nested("sparse_attention_config") if keys.has("sparse_attention_config") else None
    if sparse is not None and sparse.switch("use_sparse_attention", True):
        flags = sparse.per_layer("sparse_attention_freq", layer_count(keys))
        if flags[index]:
            attention = replace(
                attention,
                index_heads=sparse.size("sparse_num_index_heads"),
                index_dim=sparse.size("sparse_index_dim"),
            )
    elif layer_types(keys) and layer_types(keys)[index] == "sparse":
        attention = replace(
            attention, index_heads=keys.size("index_n_heads"), index_dim=keys.size("index_head_dim")
        )
    feed = moe(
        dense=dense(width="dense_intermediate_size"),
        experts=("num_local_experts", "num_experts"),
        width=("moe_intermediate_size", "intermediate_size"),
        shared=shared_key("shared_intermediate_size"),
    )
    return LayerKind(attention=attention, feed_forward=feed(keys, index))


# MiMo-V2, Step-3


def mimo_v2_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """MiMo-V2-Flash: windows with sinks and heads of their own in most layers."""
    layers = layer_count(keys)
    kinds = layer_types(keys)
    sliding = (
        kinds[index] == "sliding" if kinds else bool(keys.per_layer("hybrid_layer_pattern", layers)[index])
    )
    own = "swa_" if sliding and keys.has("swa_num_key_value_heads") else ""
    kv_heads = keys.size(f"{own}num_key_value_heads")
    if sliding and not own:
        kv_heads = 2 * kv_heads
    attention = HeadAttention(
        type=AttentionType.SLIDING if sliding else AttentionType.FULL,
        heads=keys.size(keys.first(f"{own}num_attention_heads", "num_attention_heads")),
        kv_heads=kv_heads,
        head_dim=keys.size(keys.first(f"{own}head_dim", "head_dim")),
        v_head_dim=keys.size(keys.first(f"{own}v_head_dim", "v_head_dim")),
        window=keys.size(keys.first("sliding_window", "sliding_window_size")) if sliding else None,
        qkv_bias=keys.switch("attention_bias"),
        sinks=is_on(keys, "!add_swa_attention_sink_bias" if sliding else "add_full_attention_sink_bias"),
    )
    feed = moe(experts=("n_routed_experts", "num_local_experts", "num_experts"), shared=shared_times)
    return LayerKind(attention=attention, feed_forward=feed(keys, index))


def step3_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Step-3.5 and 3.7: windows that may have heads of their own, a gate per head, one shared expert."""
    attention = heads(qk_norm=QkNorm.HEAD, gate=Gate.HEAD)(keys, index)
    assert isinstance(attention, HeadAttention)
    if attention.window is not None and keys.has("attention_other_setting"):
        other = keys.nested("attention_other_setting")
        names = {"heads": "num_attention_heads", "kv_heads": "num_attention_groups", "head_dim": "head_dim"}
        given: dict[str, Any] = {size: other.size(key) for size, key in names.items() if other.has(key)}
        attention = replace(attention, **given, v_head_dim=given.get("head_dim", attention.v_head_dim))
    feed = moe(
        experts=("moe_num_experts", "num_experts", "num_local_experts"),
        top_k=("moe_top_k", "num_experts_per_tok"),
        shared=shared_key("share_expert_dim", "share_expert_dims", "shared_expert_intermediate_size"),
    )
    return LayerKind(attention=attention, feed_forward=feed(keys, index))


def step3_mfa_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Step-3: multi-matrix factorisation attention, queries through a low rank and one K/V head.

    Source: the config.json of stepfun-ai/step3, whose language model has 316B parameters.
    """
    attention = heads()(keys, index)
    assert isinstance(attention, HeadAttention)
    attention = replace(attention, q_rank=keys.size("share_q_dim"))
    feed = moe(
        experts=("moe_num_experts", "num_experts"),
        top_k=("moe_top_k", "num_experts_per_tok"),
        shared=shared_key("share_expert_dim"),
    )
    return LayerKind(attention=attention, feed_forward=feed(keys, index))


# Hunyuan, ERNIE, Granite


def hunyuan_moe_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """HunYuan-MoE: sizes of the experts may be lists with one entry per layer."""

    def one(key: str) -> int:
        value = keys.table.get(key)
        if isinstance(value, list | tuple):
            value = keys.per_layer(key, layer_count(keys))[index]
            return ConfigKeys({key: value}, keys.path).size(key)
        return keys.size(key)

    attention = heads(
        qk_norm=QkNorm.HEAD if keys.switch("use_qk_norm", True) else QkNorm.NONE,
        qkv_bias="attention_bias",
        out_bias="attention_bias",
    )(keys, index)
    width = (
        one("moe_intermediate_size") if keys.has("moe_intermediate_size") else keys.size("intermediate_size")
    )
    shared = one("num_shared_expert") if keys.has("num_shared_expert") else 1
    feed = MoeFfn(
        experts=one(keys.first("num_experts", "num_local_experts")),
        top_k=one(keys.first("moe_topk", "num_experts_per_tok")),
        width=width,
        shared_width=shared * width if keys.switch("use_mixed_mlp_moe", True) else 0,
    )
    return LayerKind(attention=attention, feed_forward=feed)


def ernie_bias(keys: ConfigKeys, index: int) -> tuple[Extra, ...]:
    """ERNIE keeps its router's score correction as a parameter."""
    experts = keys.size(keys.first("moe_num_experts", "num_experts"))
    return (Extra(ExtraPart.ROUTER, "score_correction", 1, experts),)


def granite_hybrid_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Granite-4: Mamba-2 or attention, a shared FFN, and experts where there are any."""
    kinds = layer_types(keys, frozenset({"full", "mamba", "linear"}))
    mixer = kinds[index] in ("mamba", "linear") if kinds else True
    attend = mamba2 if mixer else heads(qkv_bias="attention_bias", out_bias="attention_bias", kv_needed=False)
    shared = keys.whole("shared_intermediate_size")
    feed: FeedForward | None = DenseFfn(width=shared) if shared else None
    if keys.whole("num_local_experts"):
        feed = MoeFfn(
            experts=keys.size("num_local_experts"),
            top_k=keys.size("num_experts_per_tok"),
            width=keys.size("intermediate_size"),
            shared_width=shared,
        )
    return LayerKind(attention=attend(keys, index), feed_forward=feed)


# Arcee, Bamba, OLMo-Hybrid, LFM2


def afmoe_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """AFMoE (Trinity): windows but in each nth layer, a gate per element, four norms, a routing bias."""
    kinds = layer_types(keys)
    step = keys.whole("global_attn_every_n_layers", 4) or 4
    sliding = kinds[index] == "sliding" if kinds else (index + 1) % step != 0
    window = AttentionType.SLIDING, keys.size("sliding_window") if sliding else None
    attend = heads(
        qk_norm=QkNorm.HEAD,
        gate=Gate.ELEMENT,
        qkv_bias="attention_bias",
        out_bias="attention_bias",
        windows=lambda keys, index: window if sliding else every_token(keys, index),
        kv_needed=False,
    )
    feed = moe(
        experts=("num_experts", "num_local_experts"),
        shared=shared_times,
        extras=lambda keys, index: (
            Extra(
                ExtraPart.ROUTER,
                "score_correction",
                1,
                keys.size(keys.first("num_experts", "num_local_experts")),
            ),
        ),
    )
    return LayerKind(attention=attend(keys, index), feed_forward=feed(keys, index), norms=4)


xielu = (
    Extra(ExtraPart.NORMS, "xielu_alpha_p", 1, 1),
    Extra(ExtraPart.NORMS, "xielu_alpha_n", 1, 1),
)
"""Apertus' activation has two trained numbers."""


def laguna_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Laguna: windows, query heads that may differ by layer, a gate, one shared expert, a router's bias."""
    gates = {True: Gate.HEAD, False: Gate.ELEMENT, "per-head": Gate.HEAD, "per-element": Gate.ELEMENT}
    gating = keys.table.get("gating", True)
    if not isinstance(gating, bool | str) or gating not in gates:
        raise ConfigError(
            keys.field("gating"), gating, "must be true, 'per-head' or 'per-element'", "try true"
        )
    attention = heads(
        head_dim_needed=True, qk_norm=QkNorm.HEAD, qkv_bias="attention_bias", out_bias="attention_bias",
        gate=gates[gating],
    )(keys, index)  # fmt: skip
    assert isinstance(attention, HeadAttention)
    if keys.has("num_attention_heads_per_layer"):
        value = keys.per_layer("num_attention_heads_per_layer", layer_count(keys))[index]
        one = ConfigKeys({"num_attention_heads_per_layer": value}, keys.path)
        attention = replace(attention, heads=one.size("num_attention_heads_per_layer"))
    feed = moe(
        experts=("num_experts", "num_local_experts"),
        shared=shared_key("shared_expert_intermediate_size"),
        extras=ernie_bias,
    )
    return LayerKind(attention=attention, feed_forward=feed(keys, index))


def bamba_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Bamba: Mamba-2, attention in the layers that ``attn_layer_indices`` names, a dense FFN in each."""
    kinds = layer_types(keys, frozenset({"full", "mamba", "linear"}))
    full = kinds[index] == "full" if kinds else index in keys.indices("attn_layer_indices", layer_count(keys))
    attend = heads(qkv_bias="attention_bias", out_bias="attention_bias", kv_needed=False, windows=every_token)
    mixer = (attend if full else mamba2)(keys, index)
    return LayerKind(attention=mixer, feed_forward=dense(bias="mlp_bias")(keys, index))


def olmo_hybrid_mixer(keys: ConfigKeys, index: int) -> Attention | None:
    """OLMo-Hybrid: a gated delta net, or attention with norms as wide as all heads; sizes may be absent."""
    count, hidden = heads_of(keys), hidden_of(keys)
    heads_there = keys.optional_size("linear_num_key_heads") or count
    key_dim = keys.optional_size("linear_key_head_dim") or int(0.75 * hidden / heads_there)
    given = {
        "linear_num_key_heads": heads_there,
        "linear_num_value_heads": keys.optional_size("linear_num_value_heads") or count,
        "linear_key_head_dim": key_dim,
        "linear_value_head_dim": keys.optional_size("linear_value_head_dim") or 2 * key_dim,
        "linear_conv_kernel_dim": keys.optional_size("linear_conv_kernel_dim") or 4,
    }
    full = heads(
        qk_norm=QkNorm.WIDTH, qkv_bias="attention_bias", out_bias="attention_bias", kv_needed=False,
        windows=every_token,
    )  # fmt: skip
    filled = ConfigKeys(keys.table | given, keys.path, keys.warnings)
    return hybrid(delta_net, full)(filled, index)


def lfm2_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """LFM2: a gated short convolution, or attention with q/k norms; experts after the dense layers."""
    kinds = layer_types(keys, frozenset({"full", "conv"}))
    if kinds:
        full = kinds[index] == "full"
    else:
        count = layer_count(keys)
        full = not keys.has("full_attn_idxs") or index in keys.indices("full_attn_idxs", count)
    attend = heads(qk_norm=QkNorm.HEAD, windows=every_token)
    mixer = (attend if full else short_conv)(keys, index)
    if keys.has("num_experts"):
        feed = moe(experts=("num_experts",), dense=dense(width="intermediate_size"))
        return LayerKind(attention=mixer, feed_forward=feed(keys, index))
    return LayerKind(attention=mixer, feed_forward=DenseFfn(width=_lfm2_width(keys)))


def _lfm2_width(keys: ConfigKeys) -> int:
    """Two thirds of the stated width, times a factor, rounded up to a multiple, where the config asks."""
    width = keys.size(keys.first("block_ff_dim", "intermediate_size"))
    if not keys.switch("block_auto_adjust_ff_dim", True):
        return width
    width = int(2 * width / 3)
    factor = keys.number("block_ffn_dim_multiplier") if keys.has("block_ffn_dim_multiplier") else 1.0
    multiple = keys.optional_size("block_multiple_of") or 256
    return multiple * -(-int(factor * width) // multiple)


def lfm2_ends(keys: ConfigKeys) -> dict[str, Any]:
    """Sigmoid routing with a bias where there are experts."""
    if not keys.has("num_experts"):
        return {}
    return routing(RouterKind.SIGMOID_BIAS_TOPK, renormalise="!norm_topk_prob")(keys)


# Nemotron


_PATTERN = {"M": "mamba", "E": "moe", "*": "full", "-": "mlp"}


def _blocks(keys: ConfigKeys) -> tuple[str, ...]:
    """What each layer is, from a pattern of letters or a list of words."""

    def read() -> tuple[str, ...]:
        if keys.has("hybrid_override_pattern"):
            text = keys.table["hybrid_override_pattern"]
            if not isinstance(text, str) or len(text) != layer_count(keys) or set(text) - set(_PATTERN):
                rule = f"must have one of {' '.join(_PATTERN)} for each of the layers"
                raise ConfigError(keys.field("hybrid_override_pattern"), text, rule, "write 'ME*E'")
            return tuple(_PATTERN[letter] for letter in text)
        words = keys.words("layers_block_type")
        for word in words:
            if LAYER_TYPES.get(word) not in ("mamba", "linear", "moe", "mlp", "full"):
                rule = "is not a kind of layer this reader knows"
                raise ConfigError(keys.field("layers_block_type"), word, rule, "try 'mamba'")
        return tuple("mamba" if LAYER_TYPES[word] == "linear" else LAYER_TYPES[word] for word in words)

    return keys.once("blocks", read)


def nemotron_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Nemotron-H: each layer is one of Mamba-2, attention, experts or a plain FFN, with one norm."""
    word = _blocks(keys)[index]
    if word == "mamba":
        return LayerKind(attention=mamba2(keys, index), norms=1)
    if word == "full":
        attend = heads(qkv_bias="attention_bias", out_bias="attention_bias", windows=every_token)
        return LayerKind(attention=attend(keys, index), norms=1)
    if word == "mlp":
        return LayerKind(feed_forward=dense(gated=False, bias="mlp_bias")(keys, index), norms=1)
    feed = MoeFfn(
        experts=keys.size("n_routed_experts"),
        top_k=keys.size("num_experts_per_tok"),
        width=keys.size("moe_intermediate_size"),
        gated=False,
        shared_width=keys.whole("moe_shared_expert_intermediate_size")
        if keys.whole("n_shared_experts")
        else 0,
        latent=keys.whole("moe_latent_size"),
    )
    return LayerKind(feed_forward=feed, norms=1)


def nemotron_ends(keys: ConfigKeys) -> dict[str, Any]:
    """DeepSeek-V3's routing where there are experts."""
    if "moe" not in _blocks(keys):
        return {}
    return routing(RouterKind.SIGMOID_BIAS_TOPK, groups=True)(keys)


def nas_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Nemotron by architecture search (DeciLM): each block states its K/V groups and its FFN's width."""
    blocks = keys.per_layer("block_configs", layer_count(keys))
    block = ConfigKeys(blocks[index], f"{keys.path}.block_configs")
    attend, feed = block.nested("attention"), block.nested("ffn")
    for table in (attend, feed):
        if table.switch("replace_with_linear"):
            rule = "is not a part this reader counts"
            raise ConfigError(table.field("replace_with_linear"), True, rule, "give the sizes in [model]")
    count, hidden = heads_of(keys), hidden_of(keys)
    size = head_size(keys)
    attention: HeadAttention | None = None
    if not attend.switch("no_op"):
        group = attend.size("n_heads_in_group", high=count)
        bias = keys.switch("attention_bias")
        attention = HeadAttention(
            type=AttentionType.FULL, heads=count, kv_heads=count // group, head_dim=size, v_head_dim=size,
            qkv_bias=bias, out_bias=bias,
        )  # fmt: skip
    part: DenseFfn | None = None
    if not feed.switch("no_op"):
        width = int(2 * feed.number("ffn_mult") * hidden / 3)
        part = DenseFfn(width=-(-width // 256) * 256)
    return LayerKind(
        attention=attention, feed_forward=part, norms=(attention is not None) + (part is not None)
    )


# LongCat


def longcat_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """LongCat-Flash: each layer has two attentions and two dense FFNs, and experts beside the first.

    It reads as two layers: the experts run beside the dense FFN of the first.
    """
    attention = latent(bias="attention_bias")(keys, index)
    width = keys.size("ffn_hidden_size")
    if index % 2:
        return LayerKind(attention=attention, feed_forward=DenseFfn(width=width))
    feed = MoeFfn(
        experts=keys.size(keys.first("n_routed_experts", "num_local_experts", "num_experts")),
        top_k=keys.size(keys.first("moe_topk", "num_experts_per_tok")),
        width=keys.size(keys.first("expert_ffn_hidden_size", "moe_intermediate_size")),
        zero_experts=keys.whole("zero_expert_num"),
        router_bias=keys.switch("router_bias"),
        shared_width=width,
    )
    return LayerKind(attention=attention, feed_forward=feed)


def longcat_ends(keys: ConfigKeys) -> dict[str, Any]:
    """Softmax scores with a correction, over experts and identity experts; the dense FFN is shared."""
    keys.warn("each LongCat layer reads as two: attention and FFN twice, experts beside the first FFN")
    keys.warn("identity experts have no weights; how often they are picked is not modelled")
    return {"router": RouterKind.SOFTMAX_TOPK, "shared_experts": 1}


# DeepSeek-V4


def deepseek_v4_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Compressed attention, experts in every layer, and hyper-connections around both."""
    width = keys.size("moe_intermediate_size")
    feed = MoeFfn(
        experts=keys.size(keys.first("n_routed_experts", "num_local_experts")),
        top_k=keys.size("num_experts_per_tok"),
        width=width,
        shared_width=keys.whole("n_shared_experts", 1) * width,
    )
    streams, hidden = keys.whole("hc_mult", 4) or 1, hidden_of(keys)
    mixed = (2 + streams) * streams
    extras = tuple(
        Extra(ExtraPart.ATTENTION, f"hyper_{part}_{name}", rows, columns)
        for part in ("attention", "ffn")
        for name, rows, columns in (("fn", mixed, streams * hidden), ("base", 1, mixed), ("scale", 1, 3))
    )
    return LayerKind(attention=compressed(keys, index), feed_forward=feed, extras=extras)


def deepseek_v4_ends(keys: ConfigKeys) -> dict[str, Any]:
    """The mix of residual streams before the head; the first layers route by a table of token ids."""
    streams, hidden = keys.whole("hc_mult", 4) or 1, hidden_of(keys)
    keys.warn(
        "router scores are sqrtsoftplus, and the first layers route by a table of token ids: not modelled"
    )
    return {
        "extras": (
            Extra(ExtraPart.ATTENTION, "hyper_head_fn", streams, streams * hidden),
            Extra(ExtraPart.ATTENTION, "hyper_head_base", 1, streams),
            Extra(ExtraPart.ATTENTION, "hyper_head_scale", 1, 1),
        ),
        "shared_experts": keys.whole("n_shared_experts", 1),
        "routed_scale": keys.number("routed_scaling_factor") if keys.has("routed_scaling_factor") else None,
    }


# Kimi-Linear, Kimi-K3, Ling and Ring


def kimi_linear_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Kimi delta attention, or MLA; K3 adds a latent for the experts, gates and attention residuals."""
    gate = Gate.ELEMENT if keys.switch("mla_use_output_gate") else Gate.NONE
    full = latent(bias=False, gate=gate)
    attention = (kda() if _is_kimi_linear(keys, index) else full)(keys, index)
    narrow = keys.whole("routed_expert_hidden_size")
    feed = moe(
        experts=("num_experts", "num_local_experts"),
        top_k=("num_experts_per_token", "num_experts_per_tok"),
        shared=shared_times,
        latent="routed_expert_hidden_size",
        extras=lambda keys, index: (
            (Extra(ExtraPart.NORMS, "latent_moe_norm", 1, narrow),)
            if narrow and keys.switch("latent_moe_use_norm")
            else ()
        ),
    )
    return LayerKind(attention=attention, feed_forward=feed(keys, index))


def _is_kimi_linear(keys: ConfigKeys, index: int) -> bool:
    kinds = layer_types(keys, _FULL_OR_LINEAR)
    if kinds:
        return kinds[index] == "linear"
    table = keys.nested("linear_attn_config")

    def linear() -> frozenset[int]:
        return ConfigKeys(table.table, table.path).indices("kda_layers", layer_count(keys) + 1)

    return index + 1 in keys.once("kda_layers", linear)


def kimi_linear_ends(keys: ConfigKeys) -> dict[str, Any]:
    """Sigmoid routing in groups."""
    if keys.has("attn_res_block_size"):
        keys.warn(
            "Kimi-K3's code is in no library that was checked: its output gates, latent experts and q/k/v "
            "projections are counted by their names, its attention residuals are not counted"
        )
    return routing(RouterKind.SIGMOID_BIAS_TOPK, groups=True, group_key="num_expert_group")(keys)


def bailing_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Ling and Ring hybrids: linear layers and full ones in groups, the last of each group full.

    Ling-3 has Kimi's delta attention and MLA with a gate per head; Ring-2.5 lightning attention and MLA;
    Ling- and Ring-linear 2.0 lightning attention and grouped queries.
    """
    kinds = layer_types(keys, _FULL_OR_LINEAR)
    step = keys.whole("layer_group_size", 6) or 6
    linear = kinds[index] == "linear" if kinds else (index + 1) % step != 0
    delta = any(
        keys.has(key) for key in ("short_conv_kernel_size", "linear_conv_kernel_dim", "kda_safe_gate")
    )
    if not kinds and not delta and not keys.has("kv_lora_rank"):
        linear = linear and index < layer_count(keys) // step * step
    normed = QkNorm.HEAD if keys.switch("use_qk_norm", True) else QkNorm.NONE
    attention: Attention | None
    if linear:
        attention = kda(decay_full=True)(keys, index) if delta else lightning(keys, index)
        if not delta:
            assert isinstance(attention, LinearAttention)
            attention = replace(attention, qk_norm=normed)
    elif keys.has("kv_lora_rank"):
        attention = latent(bias=False, gate=Gate.HEAD if delta else Gate.NONE)(keys, index)
    else:
        attention = heads(qk_norm=normed, qkv_bias="use_qkv_bias", out_bias="use_bias")(keys, index)
    feed = moe(
        experts=("num_experts", "num_local_experts"),
        top_k=("num_experts_per_token", "num_experts_per_tok"),
        shared=shared_times,
    )
    return LayerKind(attention=attention, feed_forward=feed(keys, index))


def bailing_ends(keys: ConfigKeys) -> dict[str, Any]:
    """Sigmoid routing in groups, under either name of their number."""
    key = keys.first("num_expert_group", "n_group")
    return routing(RouterKind.SIGMOID_BIAS_TOPK, groups=True, group_key=key)(keys)


def bailing_moe_layer(keys: ConfigKeys, index: int) -> LayerKind:
    """Ling and Ring 2.0: grouped queries with q/k norms, dense layers first, shared experts."""
    attend = heads(
        qk_norm=QkNorm.HEAD if keys.switch("use_qk_norm") else QkNorm.NONE,
        qkv_bias="use_qkv_bias",
        out_bias="use_bias",
    )
    feed = moe(experts=("num_experts", "num_local_experts"), shared=shared_times)
    return layer(attend, feed)(keys, index)

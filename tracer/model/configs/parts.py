"""Parts of a layer as Hugging Face configs state them: attention, feed-forward, and which layer has which.

Each function here makes a reader of one part; ``families`` puts them together, a family per entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.errors import ConfigError, nearest, whole_number
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.layers import (
    Attention,
    AttentionType,
    CompressedAttention,
    DenseFfn,
    Extra,
    FeedForward,
    Gate,
    HeadAttention,
    LatentAttention,
    LayerKind,
    LinearAttention,
    Mamba2,
    MoeFfn,
    QkNorm,
)

MAX_LAYERS = 4_096
Switch = bool | str
Attend = Callable[[ConfigKeys, int], Attention | None]
Feed = Callable[[ConfigKeys, int], FeedForward | None]
Windows = Callable[[ConfigKeys, int], tuple[AttentionType, int | None]]

LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_attention_groups", "num_kv_heads")
WIDTH = ("intermediate_size", "dense_intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim")
EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
TOP_K = (
    "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "top_k_experts",
    "moe_top_k",
)  # fmt: skip
EXPERT_WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "expert_intermediate_size")
SHARED = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
FULL = AttentionType.FULL
SLIDING = AttentionType.SLIDING
STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 4}
LAYER_TYPES = {
    "full_attention": "full", "attention": "full", "sliding_attention": "sliding",
    "chunked_attention": "chunked", "linear_attention": "linear", "mamba": "mamba", "mamba2": "mamba",
    "moe": "moe", "mlp": "mlp", "deepseek_sparse_attention": "full", "indexed_attention": "full",
    "minimax_m3_sparse": "sparse", "conv": "conv",
    "compressed_sparse_attention": "compressed", "heavily_compressed_attention": "heavily_compressed",
    "hybrid": "hybrid", "hybrid_sliding": "hybrid_sliding",
}  # fmt: skip


def layer_count(keys: ConfigKeys) -> int:
    """Number of layers; where no key states it, as many as ``layers_block_type`` lists."""
    blocks = keys.table.get("layers_block_type")
    if isinstance(blocks, list) and not any(keys.has(key) for key in LAYERS):
        return whole_number(keys.field("layers_block_type"), len(blocks), at_most=MAX_LAYERS)
    return keys.size(keys.first(*LAYERS), high=MAX_LAYERS)


def hidden_of(keys: ConfigKeys) -> int:
    """Hidden size."""
    return keys.size(keys.first(*HIDDEN))


def heads_of(keys: ConfigKeys) -> int:
    """Query heads."""
    return keys.size(keys.first(*HEADS))


def head_size(keys: ConfigKeys, key: str = "head_dim") -> int:
    """``head_dim``, or hidden / heads where the key is absent and the heads divide it."""
    for name in (key, "attention_head_dim", "kv_channels"):
        if keys.has(name):
            return keys.size(name)
    hidden, heads = hidden_of(keys), heads_of(keys)
    return keys.size(key) if hidden % heads else hidden // heads


def is_on(keys: ConfigKeys, switch: Switch, default: bool = False) -> bool:
    """A switch that is fixed for a family, or the key that states it (``!key``: true where absent)."""
    if isinstance(switch, bool):
        return switch
    return keys.switch(switch.removeprefix("!"), switch.startswith("!") or default)


def layer_types(keys: ConfigKeys, allowed: frozenset[str] | None = None) -> tuple[str, ...]:
    """The kinds that ``layer_types`` lists, in this reader's words; empty where it is absent.

    Raises:
        ConfigError: for a kind that is not known, or a list of another length than the layers.
    """

    def read() -> tuple[str, ...]:
        key = keys.first("layer_types", "layers_block_type")
        kinds = keys.words(key)
        layers = layer_count(keys)
        if kinds and not layers <= len(kinds) <= layers + 16:
            rule = f"must have one entry for each of num_hidden_layers={layers}"
            raise ConfigError(keys.field(key), f"{len(kinds)} entries", rule, "add or remove entries")
        known = [word for word, meaning in LAYER_TYPES.items() if allowed is None or meaning in allowed]
        for kind in kinds:
            if kind not in known:
                rule = "is not a kind of layer this reader knows" + (" in this family" if allowed else "")
                raise ConfigError(keys.field(key), kind, rule, nearest(kind, known))
        return tuple(LAYER_TYPES[kind] for kind in kinds)

    return keys.once(f"layer_types {sorted(allowed or ())}", read)


def listed(*, every: int | None = None, pattern_key: str | None = None, everywhere: bool = False) -> Windows:
    """Windows by ``layer_types``; where it is absent by ``sliding_window``, in all layers or some.

    ``everywhere``: a ``sliding_window`` alone means every layer. ``pattern_key`` states n, ``every`` is its
    default: each nth layer is full. Without any of them the layers are full.
    """

    def window(keys: ConfigKeys, index: int) -> tuple[AttentionType, int | None]:
        kinds = layer_types(keys)
        if kinds:
            word = kinds[index]
            if word == "sliding":
                return SLIDING, keys.size(keys.first("sliding_window", "sliding_window_size"))
            if word == "chunked":
                return AttentionType.CHUNKED, keys.size("attention_chunk_size")
            if word != "full":
                rule = "is not a kind of layer this reader knows in this family"
                got = keys.words(keys.first("layer_types", "layers_block_type"))[index]
                raise ConfigError(keys.field("layer_types"), got, rule, "try 'full_attention'")
            return FULL, None
        size = keys.optional_size("sliding_window") if keys.switch("use_sliding_window", True) else None
        if size is None or size >= 1 << 30:
            return FULL, None
        step = keys.size(pattern_key) if pattern_key and keys.has(pattern_key) else every
        if step is not None:
            return (FULL, None) if (index + 1) % step == 0 else (SLIDING, size)
        if keys.has("max_window_layers") and keys.has("use_sliding_window"):
            return (SLIDING, size) if index >= keys.whole("max_window_layers") else (FULL, None)
        return (SLIDING, size) if everywhere else (FULL, None)

    return window


def every_token(keys: ConfigKeys, index: int) -> tuple[AttentionType, int | None]:
    """Every layer that attends sees all earlier tokens."""
    return FULL, None


def chunks(keys: ConfigKeys, index: int) -> tuple[AttentionType, int | None]:
    """Llama-4: chunks in all layers but each fourth, which has no rotary embedding."""
    if layer_types(keys):
        return listed()(keys, index)
    if not keys.has("attention_chunk_size"):
        return FULL, None
    if keys.has("no_rope_layers") and keys.table["no_rope_layers"]:
        chunked = bool(keys.per_layer("no_rope_layers", layer_count(keys))[index])
    else:
        chunked = (index + 1) % keys.whole("no_rope_layer_interval", 4) != 0
    return (AttentionType.CHUNKED, keys.size("attention_chunk_size")) if chunked else (FULL, None)


def heads(
    *,
    windows: Windows | None = None,
    head_dim_needed: bool = False,
    qk_norm: QkNorm | Callable[[ConfigKeys], QkNorm] = QkNorm.NONE,
    qkv_bias: Switch = False,
    out_bias: Switch = False,
    sinks: Switch = False,
    gate: Gate | Callable[[ConfigKeys], Gate] = Gate.NONE,
    kv_needed: bool = True,
) -> Attend:
    """Attention over K and V heads; ``windows`` says which layers see how far back."""
    see = windows or listed()

    def read(keys: ConfigKeys, index: int) -> Attention:
        word, window = see(keys, index)
        size = keys.size("head_dim") if head_dim_needed else head_size(keys)
        count = heads_of(keys)
        kv = keys.first(*KV_HEADS)
        return HeadAttention(
            type=word,
            heads=count,
            kv_heads=keys.size(kv) if kv_needed or kv in keys.table else count,
            head_dim=size,
            v_head_dim=keys.optional_size("v_head_dim") or size,
            window=window,
            qkv_bias=is_on(keys, qkv_bias),
            out_bias=is_on(keys, out_bias),
            qk_norm=qk_norm if isinstance(qk_norm, QkNorm) else qk_norm(keys),
            sinks=is_on(keys, sinks),
            gate=gate if isinstance(gate, Gate) else gate(keys),
        )

    return read


def latent(*, bias: Switch = "attention_bias", gate: Gate = Gate.NONE, indexer: bool = False) -> Attend:
    """MLA; with ``indexer`` the layers pick tokens where the config states its sizes (DSA)."""

    def read(keys: ConfigKeys, index: int) -> Attention:
        given: dict[str, Any] = {"type": AttentionType.MLA}
        if indexer and keys.first("index_n_heads", "index_head_dim") in keys.table:
            given = {
                "type": AttentionType.DSA,
                "index_heads": keys.size("index_n_heads"),
                "index_dim": keys.size("index_head_dim"),
                "index_top_k": keys.whole("index_topk"),
                "index_shared": _index_shared(keys, index),
            }
        return LatentAttention(
            heads=heads_of(keys),
            kv_lora_rank=keys.size("kv_lora_rank"),
            q_lora_rank=keys.nullable_size("q_lora_rank"),
            qk_nope_head_dim=keys.size("qk_nope_head_dim"),
            qk_rope_head_dim=keys.size("qk_rope_head_dim"),
            v_head_dim=keys.size("v_head_dim"),
            bias=is_on(keys, bias),
            gate=gate,
            **given,
        )

    return read


def _index_shared(keys: ConfigKeys, index: int) -> bool:
    """Whether a layer takes the picks of an earlier one (GLM-5.2): by ``indexer_types``, or by frequency."""
    if keys.has("indexer_types"):
        word = keys.per_layer("indexer_types", layer_count(keys))[index]
        if word not in ("full", "shared"):
            raise ConfigError(keys.field("indexer_types"), word, "must be 'full' or 'shared'", "try 'full'")
        return word == "shared"
    step = keys.whole("index_topk_freq", 1) or 1
    offset = keys.whole("index_skip_topk_offset", 2)
    return step > 1 and max(index - offset + 1, 0) % step != 0


def state_bytes(keys: ConfigKeys) -> int:
    """Bytes of a value of a recurrent state: the config's dtype, else FP32."""
    key = keys.first("mamba_ssm_dtype", "mamba_ssm_cache_dtype", "linear_attn_state_dtype")
    return keys.word(key, STATE_BYTES) if keys.has(key) else 4


def delta_net(keys: ConfigKeys, index: int) -> Attention:
    """The gated delta net of Qwen3-Next and Qwen3.5."""
    return LinearAttention(
        type=AttentionType.GATED_DELTA_NET,
        key_heads=keys.size("linear_num_key_heads"),
        value_heads=keys.size("linear_num_value_heads"),
        key_dim=keys.size("linear_key_head_dim"),
        value_dim=keys.size("linear_value_head_dim"),
        conv=keys.size("linear_conv_kernel_dim"),
        state_bytes_per_value=state_bytes(keys),
    )


def kda(*, decay_full: bool = False) -> Attend:
    """Kimi's delta attention; sizes in ``linear_attn_config`` or beside the others."""

    def read(keys: ConfigKeys, index: int) -> Attention:
        table = keys.nested("linear_attn_config") if keys.has("linear_attn_config") else keys
        count = table.size(table.first("num_heads", "linear_num_heads", "num_attention_heads"))
        size = table.size(table.first("linear_head_dim", "head_dim"))
        return LinearAttention(
            type=AttentionType.KDA,
            key_heads=count,
            value_heads=count,
            key_dim=size,
            value_dim=size,
            conv=table.size(table.first("short_conv_kernel_size", "linear_conv_kernel_dim")),
            state_bytes_per_value=state_bytes(keys),
            full_rank_decay=decay_full,
            full_rank_gate=decay_full or table.switch("use_full_rank_gate"),
        )

    return read


def lightning(keys: ConfigKeys, index: int) -> Attention:
    """The lightning attention of MiniMax-Text-01."""
    count, size = heads_of(keys), head_size(keys)
    return LinearAttention(
        type=AttentionType.LIGHTNING, key_heads=count, value_heads=count, key_dim=size, value_dim=size,
        state_bytes_per_value=state_bytes(keys),
    )  # fmt: skip


def short_conv(keys: ConfigKeys, index: int) -> Attention:
    """LFM2's short convolution, over as many channels as the hidden size."""
    hidden, count = hidden_of(keys), heads_of(keys)
    if hidden % count:
        rule = f"must divide hidden_size={hidden}"
        raise ConfigError(keys.field("num_attention_heads"), count, rule, "take both from one config.json")
    return LinearAttention(
        type=AttentionType.SHORT_CONV, key_heads=count, value_heads=count, key_dim=hidden // count,
        value_dim=hidden // count, conv=keys.size("conv_L_cache"), bias=keys.switch("conv_bias"),
    )  # fmt: skip


def _mamba_head(keys: ConfigKeys) -> int:
    """The head size; "auto" is the inner width (``mamba_expand`` x hidden) over the heads."""
    key, heads = keys.first("mamba_head_dim", "mamba_d_head"), keys.first("mamba_num_heads", "mamba_n_heads")
    if keys.table.get(key) not in (None, "auto"):
        return keys.size(key)
    inner, count = keys.whole("mamba_expand", 2) * hidden_of(keys), keys.size(heads)
    if inner % count:
        rule = f"must divide mamba_expand x hidden_size = {inner}"
        raise ConfigError(keys.field(heads), count, rule, "take both from one config.json")
    return inner // count


def mamba2(keys: ConfigKeys, index: int) -> Attention:
    """A Mamba-2 mixer, in Nemotron-H's names or Granite-4's."""
    return Mamba2(
        heads=keys.size(keys.first("mamba_num_heads", "mamba_n_heads")),
        head_dim=_mamba_head(keys),
        state=keys.size(keys.first("ssm_state_size", "mamba_d_state")),
        groups=keys.size(keys.first("n_groups", "mamba_n_groups")),
        conv=keys.size(keys.first("conv_kernel", "mamba_d_conv")),
        conv_bias=keys.switch(keys.first("use_conv_bias", "mamba_conv_bias"), True),
        bias=keys.switch(keys.first("mamba_proj_bias", "use_bias")),
        state_bytes_per_value=state_bytes(keys),
    )


def by_type(**kinds: Attend) -> Attend:
    """Attention by what ``layer_types`` says of the layer."""
    allowed = frozenset(kinds)

    def read(keys: ConfigKeys, index: int) -> Attention | None:
        found = layer_types(keys, allowed)
        if not found:
            key = keys.first("layer_types")
            raise ConfigError(keys.field(key), None, "is needed to read this config", "list every layer")
        return kinds[found[index]](keys, index)

    return read


def compressed(keys: ConfigKeys, index: int) -> Attention:
    """DeepSeek-V4: by ``compress_ratios``, 0 for the window alone, 4 with an indexer, else without.

    Source: transformers 5.24.0 ``models/deepseek_v4/configuration_deepseek_v4.py``.
    """
    if keys.has("compress_ratios"):
        value = keys.per_layer("compress_ratios", layer_count(keys))[index]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1 << 20:
            raise ConfigError(keys.field("compress_ratios"), value, "must be a whole number from 0", "try 0")
        ratio = value
        fine = ratio == 4
    else:
        word = by_type_word(keys, index)
        rates = keys.nested("compress_rates") if keys.has("compress_rates") else None
        fine = word == "compressed"
        key = "compressed_sparse_attention" if fine else "heavily_compressed_attention"
        ratio = (
            0
            if word == "sliding"
            else (rates.size(key) if rates and rates.has(key) else (4 if fine else 128))
        )
    return CompressedAttention(
        heads=heads_of(keys),
        head_dim=keys.size("head_dim"),
        q_lora_rank=keys.size("q_lora_rank"),
        qk_rope_head_dim=keys.optional_size("qk_rope_head_dim") or 64,
        o_groups=keys.size("o_groups"),
        o_lora_rank=keys.size("o_lora_rank"),
        window=keys.size("sliding_window"),
        ratio=ratio,
        index_heads=keys.size("index_n_heads") if fine else 0,
        index_dim=keys.size("index_head_dim") if fine else 0,
        index_top_k=keys.size("index_topk") if fine else 0,
    )


def by_type_word(keys: ConfigKeys, index: int) -> str:
    """What ``layer_types`` says of one layer; it must be there."""
    found = layer_types(keys)
    if not found:
        raise ConfigError(
            keys.field("layer_types"), None, "is needed to read this config", "list every layer"
        )
    return found[index]


def dense(*, gated: bool = True, bias: Switch = False, times: int = 0, width: str | None = None) -> Feed:
    """A dense FFN; ``times`` the hidden size where no key states its width."""

    def read(keys: ConfigKeys, index: int) -> FeedForward:
        key = width or keys.first(*WIDTH)
        size = times * hidden_of(keys) if times and not keys.has(key) else keys.size(key)
        return DenseFfn(width=size, gated=gated, bias=is_on(keys, bias))

    return read


def sparse_layers(keys: ConfigKeys) -> frozenset[int]:
    """0-based layers with experts, by whichever keys the family has; all where it has none."""
    return keys.once("sparse_layers", lambda: _sparse_layers(keys))


def _sparse_layers(keys: ConfigKeys) -> frozenset[int]:
    layers = layer_count(keys)
    if keys.has("mlp_layer_types"):
        words = keys.per_layer("mlp_layer_types", layers)
        for word in words:
            if word not in ("dense", "sparse", "moe", "hash_moe"):
                rule = "must be 'dense' or 'sparse'"
                raise ConfigError(keys.field("mlp_layer_types"), word, rule, "try 'dense'")
        return frozenset(index for index, word in enumerate(words[:layers]) if word != "dense")
    if isinstance(keys.table.get("moe_layer_freq"), list | tuple):
        flags = keys.per_layer("moe_layer_freq", layers)
        if any(flag not in (0, 1) for flag in flags):
            raise ConfigError(keys.field("moe_layer_freq"), list(flags), "must list 0 or 1", "write 1")
        return frozenset(index for index, flag in enumerate(flags[:layers]) if flag)
    if keys.has("moe_layers"):
        return keys.indices("moe_layers", layers)
    if keys.has("moe_layers_enum"):
        return _listed_in_text(keys, "moe_layers_enum", layers)
    if "interleave_moe_layer_step" in keys.table:
        step = keys.size("interleave_moe_layer_step")
        return frozenset(range(step - 1, layers, step))
    if keys.has("moe_layer_start_index"):
        first, last = keys.whole("moe_layer_start_index"), keys.table.get("moe_layer_end_index")
        end = layers - 1 if last in (None, -1) else keys.whole("moe_layer_end_index")
        step = keys.whole("moe_layer_interval", 1) or 1
        return frozenset(i for i in range(layers) if (i + 1) % step == 0 and first <= i <= end)
    if "first_k_dense_replace" in keys.table:
        first = keys.size("first_k_dense_replace", low=0, high=layers)
        step = keys.size("moe_layer_freq") if keys.has("moe_layer_freq") else 1
        return frozenset(n for n in range(first, layers) if n % step == 0)
    if keys.has("num_dense_layers"):
        return frozenset(range(keys.size("num_dense_layers", low=0, high=layers), layers))
    step = keys.size("decoder_sparse_step") if keys.has("decoder_sparse_step") else 1
    return frozenset(range(step - 1, layers, step)) - keys.indices("mlp_only_layers", layers)


def _listed_in_text(keys: ConfigKeys, key: str, layers: int) -> frozenset[int]:
    """Layer numbers in a text, with commas (Step-3)."""
    value = keys.table[key]
    words = value.split(",") if isinstance(value, str) and len(value) < 1 << 16 else []
    if not words or not all(word.strip().isdigit() and int(word) < layers for word in words):
        raise ConfigError(keys.field(key), value, "must list layers with commas between", "write '4,5,6'")
    return frozenset(int(word) for word in words)


def moe(
    *,
    dense: Feed | None = None,
    experts: tuple[str, ...] = EXPERTS,
    top_k: tuple[str, ...] = TOP_K,
    width: tuple[str, ...] = EXPERT_WIDTH,
    gated: bool = True,
    bias: bool = False,
    router_bias: Switch = False,
    shared: Callable[[ConfigKeys, int], int] | None = None,
    shared_gate: bool = False,
    latent: str | None = None,
    zero: str | None = None,
    extras: Callable[[ConfigKeys, int], tuple[Extra, ...]] | None = None,
) -> Feed:
    """Experts in the layers that have them, ``dense`` in the others; ``shared`` gives the shared width."""
    plain = dense or _dense_default

    def read(keys: ConfigKeys, index: int) -> FeedForward | None:
        if index not in sparse_layers(keys):
            return plain(keys, index)
        size = keys.size(keys.first(*width))
        count = keys.size(keys.first(*experts))
        picks = keys.size(keys.first(*top_k))
        if picks > count:
            rule = f"must be at most experts={count}"
            raise ConfigError(keys.field(keys.first(*top_k)), picks, rule, f"try {count}")
        return MoeFfn(
            experts=count,
            top_k=picks,
            width=size,
            gated=gated,
            bias=bias,
            router_bias=is_on(keys, router_bias),
            shared_width=shared(keys, size) if shared else 0,
            shared_gate=shared_gate,
            latent=keys.whole(latent) if latent else 0,
            zero_experts=keys.whole(zero) if zero else 0,
            extras=extras(keys, index) if extras else (),
        )

    return read


_dense_default = dense()


def shared_times(keys: ConfigKeys, width: int) -> int:
    """The shared experts' width: their number times a routed one's."""
    return keys.whole(keys.first(*SHARED)) * width


def shared_key(*names: str) -> Callable[[ConfigKeys, int], int]:
    """The shared experts' width, stated by a key (0 where it is absent)."""
    return lambda keys, width: keys.whole(keys.first(*names))


def layer(
    attention: Attend,
    feed: Feed,
    *,
    norms: int = 2,
    norm_bias: bool = False,
    extras: Callable[[ConfigKeys, int], tuple[Extra, ...]] | None = None,
) -> Callable[[ConfigKeys, int], LayerKind]:
    """A reader of a whole layer."""

    def read(keys: ConfigKeys, index: int) -> LayerKind:
        return LayerKind(
            attention=attention(keys, index),
            feed_forward=feed(keys, index),
            norms=norms,
            norm_bias=norm_bias,
            extras=extras(keys, index) if extras else (),
        )

    return read

"""A family this reader does not know, read by its keys where it is made of parts that it does know."""

from __future__ import annotations

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.families import FAMILIES, Family
from tracer.model.configs.parts import (
    EXPERTS,
    by_type,
    delta_net,
    dense,
    every_token,
    heads,
    latent,
    layer,
    layer_types,
    mamba2,
    moe,
    shared_times,
)
from tracer.model.configs.routing import routing
from tracer.model.layers import QkNorm
from tracer.model.router_kind import RouterKind

_GATED = ("silu", "swish", "swiglu", "swigluoai", "geglu")
_UNKNOWABLE = (
    "hc_mult", "block_configs", "hybrid_override_pattern", "compress_ratios", "linear_attn_config", "expand",
    "time_mix_extra_dim", "rwkv_hidden_size", "conv_L_cache", "ssm_cfg", "state_size", "o_lora_rank",
    "num_kv_shared_layers", "hidden_size_per_layer_input", "sparse_attention_config", "attn_res_block_size",
    "layer_group_size", "share_q_dim", "cross_attention_layers", "altup_num_inputs", "laurel_rank",
    "encoder_layers", "mlp_expansion", "moe_latent_size", "zero_expert_num", "routed_expert_hidden_size",
)  # fmt: skip
_OTHER_PARTS = (
    "nanochat", "vaultgemma",
    "jetmoe", "dbrx", "mpt", "bloom", "opt", "gptj", "gpt_bigcode", "hy_v4",
    "axk2", "beam", "diffllama", "dots3_note_text", "flint", "hrm_text", "kolibri1", "moshi",
    "phi4_multimodal",
)  # fmt: skip
"""Families of transformers whose layers have parts that no key of their configs states."""
_MIXERS = ("mamba_", "ssm_", "rwkv_", "conv_", "linear_", "attn_layer_")
_FIX = "give the sizes that matter in [model] by hand"
_REFUSED = "is not a family this reader knows, and its key {key!r} names a part that no other key describes"


def family_of_unknown(keys: ConfigKeys, model_type: str) -> Family:
    """A family put together from what the keys say, with a warning that lists what was assumed.

    An architecture of a known family decides, where there is one.

    Raises:
        ConfigError: naming ``model_type`` and the key, for a part that cannot be known; or the key that
            does not say what is needed.
    """
    if model_type in _OTHER_PARTS:
        rule = "is not read: its layers have parts that no key of its config states"
        raise ConfigError(keys.field("model_type"), model_type, rule, _FIX)
    known = _by_architecture(keys)
    if known is not None:
        keys.warn(
            f"{keys.field('model_type')}={model_type!r} is not known: read as {known.model_types[0]}, which "
            "its architecture names"
        )
        return known
    mixers = [key for key in keys.table if key.startswith(_MIXERS)] if not layer_types(keys) else []
    for key in (*_UNKNOWABLE, *mixers):
        if keys.has(key) and keys.table[key] not in (0, False, [], {}):
            raise ConfigError(keys.field("model_type"), model_type, _REFUSED.format(key=key), _FIX)
    if keys.table.get("is_encoder_decoder"):
        rule = "is an encoder and a decoder, and this reader knows decoders alone"
        raise ConfigError(keys.field("model_type"), model_type, rule, _FIX)
    act = keys.table.get("hidden_act") or keys.table.get("hidden_activation")
    if act not in _GATED:
        rule = (
            f"is not a family this reader knows, and hidden_act={act!r} does not say whether the FFN is gated"
        )
        raise ConfigError(keys.field("model_type"), model_type, rule, _FIX)
    return _made(keys, model_type)


def _by_architecture(keys: ConfigKeys) -> Family | None:
    """The family whose class names the config's architecture starts with, the longest one."""
    found = [
        (len(prefix), index)
        for name in keys.words("architectures")
        for index, family in enumerate(FAMILIES)
        for prefix in family.architectures
        if name.startswith(prefix) and (prefix.endswith("LM") or name[len(prefix) :].startswith("For"))
    ]
    return FAMILIES[max(found)[1]] if found else None


def _made(keys: ConfigKeys, model_type: str) -> Family:
    """The family that the keys describe."""
    assumed = ["two norms per layer and one at the end", "gated FFNs"]
    biased = keys.first("attention_bias", "use_qkv_bias", "qkv_bias", "use_bias")
    normed = keys.first("use_qk_norm", "qk_norm", "qk_layernorm")
    if keys.has("kv_lora_rank"):
        attend = latent(bias=biased, indexer=True)
        assumed.append("latent attention as DeepSeek's")
    else:
        word = QkNorm.HEAD if keys.table.get(normed) is True else QkNorm.NONE
        attend = heads(qk_norm=word, qkv_bias=biased, kv_needed=False)
        assumed.append("a q/k norm per head" if word is QkNorm.HEAD else "no q/k norms")
        assumed.append(f"biases of q, k and v by {biased}" if keys.has(biased) else "no biases")
        kinds = set(layer_types(keys))
        if kinds & {"linear", "mamba"}:
            attend = by_type(
                full=heads(qk_norm=word, qkv_bias=biased, kv_needed=False, windows=every_token),
                linear=delta_net,
                mamba=mamba2,
            )
            assumed.append("linear layers as Qwen3-Next's, Mamba layers as Granite's")
    feed, ends = dense(bias="mlp_bias"), None
    if any(keys.has(key) for key in EXPERTS):
        feed, ends = moe(shared=shared_times), routing(RouterKind.SOFTMAX_TOPK, groups=True)
        assumed.append("experts as wide as moe_intermediate_size, shared ones beside them by their number")
    keys.warn(f"{keys.field('model_type')}={model_type!r} is not known; assumed: {'; '.join(assumed)}")
    made = layer(attend, feed)
    return Family((model_type,), "", made) if ends is None else Family((model_type,), "", made, ends)

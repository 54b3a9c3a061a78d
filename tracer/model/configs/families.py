"""The families this reader knows, each composed from parts: a new family is one entry here.

Sources: each model's config.json, and the modelling files of transformers 5.24.0 for the families that are
in it; parameter totals were compared with those classes built on torch's meta device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracer.errors import ConfigError
from tracer.model.configs import side_parts, special
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.parts import (
    EXPERTS,
    by_type,
    chunks,
    delta_net,
    dense,
    heads,
    latent,
    layer,
    lightning,
    listed,
    moe,
    shared_key,
    shared_times,
)
from tracer.model.configs.routing import deepseek_routing, routing
from tracer.model.configs.vision import gemma4_unified_vision, gemma4_vision, siglip_vision
from tracer.model.layers import Gate, LayerKind, QkNorm
from tracer.model.router_kind import RouterKind

Ends = Callable[[ConfigKeys], dict[str, Any]]


def _nothing(keys: ConfigKeys) -> dict[str, Any]:
    """No fields of its own."""
    return {}


@dataclass(frozen=True, slots=True)
class Family:
    """Models whose config.json has the same keys with the same meaning.

    ``architecture`` is what the names of its classes start with, alternatives with ``|`` between.
    ``layer`` reads one layer (0-based) and ``ends`` the fields of the spec that no layer states.
    ``defaults`` are the model class's own values for keys that may be absent, with a warning for each;
    ``tied`` is its default for ``tie_word_embeddings``. ``assumed`` says what no config states and no
    class confirms; ``layers_each`` is how many layers of the spec one of the config's is.
    ``blocks`` names the modules that hold a part's matrices in checkpoints, where they are not the usual.
    ``vision`` counts the vision encoder, where the language model's class holds it.
    """

    model_types: tuple[str, ...]
    architecture: str
    layer: Callable[[ConfigKeys, int], LayerKind]
    ends: Ends = _nothing
    defaults: Mapping[str, object] = field(default_factory=dict)
    tied: bool = False
    assumed: tuple[str, ...] = ()
    layers_each: int = 1
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    vision: Callable[[ConfigKeys, int], int] | None = None

    @property
    def architectures(self) -> tuple[str, ...]:
        """What the names of its classes start with."""
        return tuple(self.architecture.split("|"))


HEAD, WIDE = QkNorm.HEAD, QkNorm.WIDTH
_SOFTMAX = RouterKind.SOFTMAX_TOPK
_SIGMOID = RouterKind.SIGMOID_BIAS_TOPK
_N_ROUTED = ("n_routed_experts", "num_local_experts", "num_experts")
_NUM = ("num_experts", "num_local_experts")
_LOCAL = ("num_local_experts", "num_experts")
_SHARED_KEY = "shared_expert_intermediate_size"


def _norm_bias(keys: ConfigKeys) -> dict[str, Any]:
    """LayerNorm with a bias at the end, too."""
    return {"norm_bias": True}


def _qwen3_moe(keys: ConfigKeys) -> dict[str, Any]:
    """No shared expert."""
    if keys.has(_SHARED_KEY) and keys.size(_SHARED_KEY, low=0):
        rule, width = "must be 0: qwen3_moe has no shared expert", keys.table[_SHARED_KEY]
        raise ConfigError(keys.field(_SHARED_KEY), width, rule, "check model_type: is it qwen2_moe?")
    return routing(_SOFTMAX, renormalise="norm_topk_prob")(keys)


def _one_shared(keys: ConfigKeys, width: int) -> int:
    """One shared expert of its own width, which the config must state."""
    return keys.size(_SHARED_KEY)


def _gpt_oss(keys: ConfigKeys) -> dict[str, Any]:
    """Routing; ``experts_per_token`` repeats ``num_experts_per_tok`` and must agree with it."""
    top_k, again = keys.size("num_experts_per_tok"), keys.optional_size("experts_per_token")
    if again is not None and again != top_k:
        rule = f"must equal num_experts_per_tok={top_k}"
        raise ConfigError(keys.field("experts_per_token"), again, rule, f"write {top_k} or leave it out")
    return {"router": RouterKind.TOPK_SOFTMAX}


def _gate_if(key: str, default: bool) -> Callable[[ConfigKeys], Gate]:
    """One gate value per element where a switch is on."""
    return lambda keys: Gate.ELEMENT if keys.switch(key, default) else Gate.NONE


def _norm_if(key: str, word: QkNorm) -> Callable[[ConfigKeys], QkNorm]:
    """q/k norms where a switch is on."""
    return lambda keys: word if keys.switch(key) else QkNorm.NONE


def _llama4(keys: ConfigKeys) -> dict[str, Any]:
    """Top-1 with a sigmoid, and one shared expert; which layers have experts must be stated."""
    if not keys.has("moe_layers"):
        keys.size("interleave_moe_layer_step")
    return {"router": RouterKind.TOPK_SIGMOID, "shared_experts": 1}


def _grouped(keys: ConfigKeys) -> dict[str, Any]:
    """DeepSeek's routing; K/V heads are stated though the cache is a latent."""
    if not keys.has("mlp_layer_types"):
        keys.size("first_k_dense_replace", low=0)
    return {"kv_heads": keys.size("num_key_value_heads")} | deepseek_routing(keys)


_DEEPSEEK_FFN = moe(dense=dense(width="intermediate_size"), experts=_N_ROUTED, shared=shared_times)
_PLAIN = {"gated": False, "bias": True}
_EVERYWHERE = listed(everywhere=True)

FAMILIES: tuple[Family, ...] = (
    # dense, gated
    Family(("llama",), "Llama", layer(heads(qkv_bias="attention_bias", out_bias="attention_bias"),
           dense(bias="mlp_bias"))),
    Family(("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"),
           "Qwen2|Qwen2VL|Qwen2_5_VL",
           layer(heads(qkv_bias=True), dense())),
    Family(("qwen3", "qwen3_vl_text", "qwen3_vl"), "Qwen3|Qwen3VL",
           layer(heads(head_dim_needed=True, qk_norm=HEAD, qkv_bias="attention_bias",
                       out_bias="attention_bias"), dense())),
    Family(("mistral", "ministral", "ministral3"), "Mistral|Ministral",
           layer(heads(windows=_EVERYWHERE), dense())),
    Family(("mimo",), "MiMoForCausalLM", layer(heads(qkv_bias="attention_bias"), dense()),
           assumed=("attention_bias means biases of q, k and v (the remote code is a Qwen2)",)),
    Family(("phi3",), "Phi3", layer(heads(windows=_EVERYWHERE, kv_needed=False), dense())),
    Family(("hyperclovax",), "HyperCLOVAX", side_parts.hyperclovax_layer),
    Family(("smollm3",), "SmolLM3", layer(heads(qkv_bias="attention_bias", out_bias="attention_bias"),
           dense(bias="mlp_bias")), tied=True),
    Family(("seed_oss",), "SeedOss", layer(heads(qkv_bias="attention_bias", out_bias="attention_out_bias"),
           dense(bias="mlp_bias"))),
    Family(("granite",), "Granite", layer(heads(qkv_bias="attention_bias", out_bias="attention_bias"),
           dense(bias="mlp_bias"))),
    Family(("granite_swa",), "GraniteSWA", layer(heads(qkv_bias="attention_bias", out_bias="attention_bias",
           sinks=True), dense(bias="mlp_bias"))),
    Family(("ernie4_5",), "Ernie4_5ForCausalLM", layer(heads(qkv_bias="use_bias", out_bias="use_bias"),
           dense(bias="use_bias")), tied=True),
    Family(("hunyuan_v1_dense",), "HunYuanDense", layer(heads(qk_norm=HEAD, qkv_bias="attention_bias",
           out_bias="attention_bias"), dense())),
    Family(("olmo",), "OlmoForCausalLM", layer(heads(qkv_bias="attention_bias", out_bias="attention_bias",
           kv_needed=False), dense(), norms=0), lambda keys: {"final_norm": False}),
    Family(("olmo2", "olmo3"), "Olmo2|Olmo3", layer(heads(qk_norm=WIDE, qkv_bias="attention_bias",
           out_bias="attention_bias", windows=listed(every=4), kv_needed=False), dense())),
    Family(("gemma",), "GemmaForCausalLM", layer(heads(head_dim_needed=True), dense()), tied=True),
    Family(("gemma2",), "Gemma2", layer(
        heads(head_dim_needed=True, windows=listed(every=2)), dense(), norms=4),
           tied=True),
    Family(("gemma3_text", "gemma3"), "Gemma3", layer(
        heads(head_dim_needed=True, qk_norm=HEAD, kv_needed=False, windows=listed(
            every=6, pattern_key="sliding_window_pattern")), dense(), norms=4),
        tied=True, defaults={"head_dim": 256, "num_attention_heads": 8, "num_key_value_heads": 4,
                             "vocab_size": 262208},
        vision=siglip_vision),
    Family(("gemma4_text", "gemma4"), "Gemma4", special.gemma4_layer, special.gemma4_ends, tied=True,
           blocks={"experts": ("experts", "experts.0", "moe.experts"), "shared": ("mlp",)},
           vision=gemma4_vision),
    Family(("gemma4_unified_text", "gemma4_unified"), "Gemma4Unified", side_parts.gemma4_unified_layer,
           tied=True, vision=gemma4_unified_vision),
    Family(("gemma3n_text", "gemma3n"), "Gemma3n", side_parts.gemma3n_layer, side_parts.gemma3n_ends,
           tied=True, defaults={"vocab_size": 262_400, "num_attention_heads": 8, "num_key_value_heads": 2,
                                "head_dim": 256}),
    Family(("glm",), "GlmForCausalLM", layer(heads(qkv_bias="attention_bias"), dense())),
    Family(("glm4",), "Glm4ForCausalLM", layer(heads(qkv_bias="attention_bias"), dense(), norms=4)),
    Family(("cohere",), "CohereForCausalLM", layer(heads(qkv_bias="attention_bias", out_bias="attention_bias",
           kv_needed=False), dense(), norms=1), tied=True),
    Family(("cohere2",), "Cohere2", layer(heads(qkv_bias="attention_bias", out_bias="attention_bias",
           kv_needed=False, windows=listed(every=4, pattern_key="sliding_window_pattern")), dense(), norms=1),
           tied=True),
    Family(("cohere2_moe",), "Cohere2Moe", side_parts.cohere2_moe_layer, side_parts.cohere2_moe_ends,
           tied=True),
    Family(("exaone4",), "Exaone4", layer(heads(qk_norm=HEAD, windows=listed(every=4)), dense())),
    Family(("stablelm",), "StableLm", layer(heads(qkv_bias="use_qkv_bias"), dense(), norm_bias=True),
           _norm_bias),
    # dense, plain
    Family(("gpt2",), "GPT2", layer(heads(qkv_bias=True, out_bias=True, kv_needed=False),
           dense(gated=False, bias=True, times=4), norm_bias=True), special.gpt2_ends, tied=True),
    Family(("gpt_neox",), "GPTNeoX", layer(heads(qkv_bias="!attention_bias", out_bias="!attention_bias",
           kv_needed=False), dense(gated=False, bias=True), norm_bias=True), _norm_bias),
    Family(("falcon",), "Falcon", special.falcon_layer, _norm_bias, tied=True),
    Family(("phi",), "PhiForCausalLM", layer(heads(qkv_bias=True, out_bias=True, kv_needed=False),
           dense(gated=False, bias=True), norms=1, norm_bias=True),
           lambda keys: {"norm_bias": True, "head_bias": True}),
    Family(("starcoder2",), "Starcoder2", layer(
        heads(qkv_bias="!use_bias", out_bias="!use_bias", windows=_EVERYWHERE, kv_needed=False),
        dense(gated=False, bias="!use_bias"), norm_bias=True), _norm_bias, tied=True),
    Family(("arcee",), "Arcee", layer(heads(), dense(gated=False))),
    Family(("apertus",), "ApertusForCausalLM", layer(heads(qk_norm=HEAD, qkv_bias="attention_bias",
           out_bias="attention_bias", kv_needed=False), dense(gated=False),
           extras=lambda keys, index: special.xielu)),
    Family(("jais2",), "Jais2", layer(heads(qkv_bias="!attention_bias", out_bias="!attention_bias"),
           dense(gated=False, bias="!mlp_bias"), norm_bias=True), _norm_bias),
    # mixtures of experts
    Family(("mixtral",), "Mixtral", layer(heads(), moe(experts=_LOCAL, width=("intermediate_size",))),
           lambda keys: {"router": _SOFTMAX, "renormalise": True}),
    Family(("phimoe",), "Phimoe", layer(heads(qkv_bias="attention_bias", out_bias="attention_bias",
           windows=_EVERYWHERE), moe(experts=_LOCAL, width=("intermediate_size",)), norm_bias=True),
           special.phimoe_ends),
    Family(("qwen2_moe",), "Qwen2Moe", layer(heads(qkv_bias="!qkv_bias"),
           moe(experts=_NUM, shared=_one_shared, shared_gate=True)),
           routing(_SOFTMAX, renormalise="norm_topk_prob", shared_experts=1),
           defaults={"decoder_sparse_step": 1, "mlp_only_layers": []}),
    Family(("qwen3_moe", "qwen3_vl_moe_text", "qwen3_vl_moe", "qwen3_omni_moe_text", "qwen3_omni_moe_thinker",
            "qwen3_omni_moe"), "Qwen3Moe|Qwen3VLMoe|Qwen3OmniMoe",
           layer(heads(head_dim_needed=True, qk_norm=HEAD, qkv_bias="attention_bias",
                       out_bias="attention_bias"), moe(experts=_NUM)), _qwen3_moe,
           defaults={"decoder_sparse_step": 1, "mlp_only_layers": []}),
    Family(("qwen3_next", "qwen3_5_moe_text", "qwen3_5_moe"), "Qwen3_5Moe|Qwen3Next", layer(
        special.hybrid(delta_net, heads(head_dim_needed=True, qk_norm=HEAD,
                                        gate=_gate_if("attn_output_gate", True))),
        moe(experts=_NUM, shared=_one_shared, shared_gate=True)),
        routing(_SOFTMAX, renormalise="!norm_topk_prob", shared_experts=1)),
    Family(("qwen3_5_text", "qwen3_5"), "Qwen3_5ForC", layer(
        special.hybrid(delta_net, heads(head_dim_needed=True, qk_norm=HEAD,
                                        gate=_gate_if("attn_output_gate", True))), dense())),
    Family(("gpt_oss",), "GptOss", layer(
        heads(head_dim_needed=True, qkv_bias="!attention_bias", out_bias="!attention_bias", sinks=True,
              windows=listed(every=2)),
        moe(experts=_LOCAL, top_k=("num_experts_per_tok",), width=("intermediate_size",), bias=True,
            router_bias=True)), _gpt_oss),
    Family(("llama4_text", "llama4"), "Llama4", layer(
        heads(head_dim_needed=True, windows=chunks),
        moe(dense=dense(width="intermediate_size_mlp"), experts=_LOCAL, width=("intermediate_size",),
            shared=lambda keys, width: width)),
        _llama4),
    Family(("glm4_moe", "glm4v_moe_text", "glm4v_moe"), "Glm4Moe", layer(
        heads(head_dim_needed=True, qkv_bias="attention_bias", qk_norm=_norm_if("use_qk_norm", HEAD)),
        moe(experts=_N_ROUTED, shared=shared_times)), routing(_SIGMOID, groups=True),
        defaults={"n_group": 1, "topk_group": 1, "norm_topk_prob": True}),
    Family(("solar_open",), "SolarOpen", layer(heads(head_dim_needed=True),
           moe(experts=_N_ROUTED, shared=shared_times)), routing(_SIGMOID, groups=True),
           defaults={"n_group": 1, "topk_group": 1, "norm_topk_prob": True}),
    Family(("minimax_m2",), "MiniMaxM2", layer(heads(head_dim_needed=True, qk_norm=special.minimax_norm),
           moe(experts=_LOCAL, width=("intermediate_size",))), routing(_SIGMOID)),
    Family(("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"), "MiniMaxM3", special.minimax_m3_layer,
           routing(_SIGMOID, shared_experts=1)),
    Family(("minimax",), "MiniMaxForCausalLM", layer(by_type(linear=lightning, full=heads()),
           moe(experts=_LOCAL, width=("intermediate_size",))), routing(_SOFTMAX, renormalise=True)),
    Family(("mimo_v2_flash",), "MiMoV2Flash", special.mimo_v2_layer, routing(_SIGMOID)),
    Family(("step3p5", "step3p7", "step3p7_text", "step3p5_text"), "Step3p", special.step3_layer,
           routing(_SIGMOID, shared_experts=1)),
    Family(("step3_text", "step3_vl", "step3"), "Step3VL|Step3Text|Step3ForC", special.step3_mfa_layer,
           routing(_SOFTMAX, shared_experts=1)),
    Family(("dots1",), "Dots1", layer(heads(qk_norm=HEAD, qkv_bias="attention_bias",
           out_bias="attention_bias"), moe(experts=_N_ROUTED, shared=shared_times)),
           routing(_SIGMOID, groups=True), defaults={"n_group": 1, "topk_group": 1}),
    Family(("exaone_moe",), "ExaoneMoe", layer(heads(qk_norm=HEAD), moe(experts=_NUM, shared=shared_times)),
           routing(_SIGMOID)),
    Family(("hunyuan_v1_moe",), "HunYuanMoE", special.hunyuan_moe_layer,
           routing(_SOFTMAX, renormalise=True)),
    Family(("hy_v3",), "HYV3", layer(heads(head_dim_needed=True, qk_norm=HEAD, qkv_bias="attention_bias",
           out_bias="attention_bias"), moe(experts=_NUM, shared=shared_times)), routing(_SIGMOID)),
    Family(("ernie4_5_moe",), "Ernie4_5_Moe", layer(
        heads(qkv_bias="use_bias", out_bias="use_bias"),
        moe(experts=("moe_num_experts", *EXPERTS), dense=dense(bias="use_bias"), shared=shared_times,
            extras=special.ernie_bias)), routing(_SOFTMAX, renormalise=True), tied=True),
    Family(("olmoe",), "Olmoe", layer(heads(qk_norm=WIDE, kv_needed=False),
           moe(experts=_NUM, width=("intermediate_size",))), routing(_SOFTMAX, renormalise="norm_topk_prob")),
    Family(("flex_olmo",), "FlexOlmo", layer(heads(qk_norm=WIDE, kv_needed=False),
           moe(experts=_NUM, width=("intermediate_size",))), routing(_SOFTMAX, renormalise="norm_topk_prob")),
    Family(("granitemoe", "granitemoeshared"), "GraniteMoeForCausalLM|GraniteMoeShared", layer(
        heads(qkv_bias="attention_bias", out_bias="attention_bias", kv_needed=False),
        moe(experts=_LOCAL, width=("intermediate_size",), shared=shared_key("shared_intermediate_size"))),
        routing(RouterKind.TOPK_SOFTMAX)),
    Family(("granitemoe_swa",), "GraniteMoeSWA", layer(
        heads(qkv_bias="attention_bias", out_bias="attention_bias", sinks=True, kv_needed=False),
        moe(experts=_LOCAL, width=("intermediate_size",), shared=shared_key("shared_intermediate_size"))),
        routing(RouterKind.TOPK_SOFTMAX)),
    Family(("mellum",), "Mellum", layer(heads(head_dim_needed=True, qk_norm=HEAD, qkv_bias="attention_bias",
           out_bias="attention_bias"), moe(experts=_LOCAL)),
           routing(_SOFTMAX, renormalise="!norm_topk_prob")),
    Family(("laguna",), "Laguna", special.laguna_layer, routing(_SIGMOID)),
    Family(("granitemoehybrid",), "GraniteMoeHybrid", special.granite_hybrid_layer,
           routing(RouterKind.TOPK_SOFTMAX)),
    Family(("afmoe",), "Afmoe", special.afmoe_layer, routing(_SIGMOID)),
    Family(("bamba",), "Bamba", special.bamba_layer),
    Family(("falcon_h1",), "FalconH1", side_parts.falcon_h1_layer, side_parts.falcon_h1_ends, layers_each=2),
    Family(("jamba",), "Jamba", side_parts.jamba_layer, side_parts.jamba_ends),
    Family(("zaya",), "Zaya", side_parts.zaya_layer, side_parts.zaya_ends, tied=True),
    Family(("olmo_hybrid",), "OlmoHybrid", layer(special.olmo_hybrid_mixer, dense())),
    Family(("lfm2", "lfm2_moe"), "Lfm2", special.lfm2_layer, special.lfm2_ends, tied=True,
           defaults={"conv_L_cache": 3}),
    Family(("nemotron_h",), "NemotronH", special.nemotron_layer, special.nemotron_ends),
    Family(("nemotron-nas",), "DeciLM", special.nas_layer),
    Family(("longcat_flash",), "LongcatFlash", special.longcat_layer, special.longcat_ends,
           layers_each=2),
    # latent attention
    Family(("deepseek_v3", "kimi_k2"), "DeepseekV3", layer(latent(), _DEEPSEEK_FFN), _grouped,
           defaults={"moe_layer_freq": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc"}),
    Family(("axk1",), "AXK1", side_parts.axk1_layer, routing(_SIGMOID, groups=True)),
    Family(("deepseek_v2",), "DeepseekV2", layer(latent(), _DEEPSEEK_FFN), _grouped,
           defaults={"moe_layer_freq": 1, "scoring_func": "softmax"}),
    Family(("deepseek_v32",), "DeepseekV32", layer(latent(indexer=True), _DEEPSEEK_FFN), _grouped,
           defaults={"moe_layer_freq": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc"}),
    Family(("glm_moe_dsa",), "GlmMoeDsa", layer(latent(indexer=True), _DEEPSEEK_FFN), _grouped,
           defaults={"scoring_func": "sigmoid", "topk_method": "noaux_tc"}),
    Family(("glm4_moe_lite",), "Glm4MoeLite", layer(latent(), _DEEPSEEK_FFN), _grouped,
           defaults={"scoring_func": "sigmoid", "topk_method": "noaux_tc"}),
    Family(("deepseek_v4", "deepseek_ref"), "DeepseekV4", special.deepseek_v4_layer,
           special.deepseek_v4_ends),
    Family(("kimi_linear", "kimi_k3"), "Kimi", special.kimi_linear_layer, special.kimi_linear_ends),
    Family(("bailing_hybrid", "bailing_moe_linear", "bailing_moe_linear_v2", "bailing_moe_v2_5"),
           "BailingHybrid|BailingMoeLinear|BailingMoeV2_5",
           special.bailing_layer,
           special.bailing_ends),
    Family(("bailing_moe", "bailing_moe_v2"), "BailingMoe", special.bailing_moe_layer,
           routing(_SIGMOID, groups=True)),
)  # fmt: skip
MODEL_TYPES = {model_type: family for family in FAMILIES for model_type in family.model_types}
WRAPPED = {"kimi_k25": "kimi_k2", "mistral3": "mistral", "llava": "llama"}
"""Wrappers whose name says nothing of the language model inside: what to take where it names none."""

"""DeepSeek-V2, V3, R1, V3.2 and Kimi-K2: MLA, dense layers first, shared experts.

Sources: each model's config.json; deepseek-ai/DeepSeek-V3 ``inference/model.py`` class Gate.
"""

from __future__ import annotations

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.family import Family, dense_form
from tracer.model.router_kind import RouterKind

# (scoring_func, topk_method) -> (router, whether groups limit the choice)
_ROUTERS = {
    ("sigmoid", "noaux_tc"): (RouterKind.SIGMOID_BIAS_TOPK, True),
    ("softmax", "group_limited_greedy"): (RouterKind.SOFTMAX_TOPK, True),
    ("softmax", "greedy"): (RouterKind.SOFTMAX_TOPK, False),
}


def _rest(keys: ConfigKeys) -> dict[str, object]:
    """Latent sizes, which layers are dense, shared experts and routing."""
    layers, step = keys.size("num_hidden_layers"), keys.size("moe_layer_freq")
    first = keys.size("first_k_dense_replace", low=0, high=layers)
    return {
        "q_lora_rank": keys.nullable_size("q_lora_rank"),
        "dense_layers": dense_form(layers, frozenset(n for n in range(first, layers) if n % step == 0)),
        "shared_experts": keys.size("n_shared_experts", low=0) if keys.has("n_shared_experts") else 0,
        **_routing(keys),
        "left_out": _indexer(keys),
    }


def _routing(keys: ConfigKeys) -> dict[str, object]:
    """Router, groups, scale; a pair of scoring_func and topk_method without a known meaning is refused."""
    score = keys.word("scoring_func", {"sigmoid": "sigmoid", "softmax": "softmax"})
    methods = {method: both for (scoring, method), both in _ROUTERS.items() if scoring == score}
    router, grouped = keys.word("topk_method", methods)
    renormalise = keys.flag("norm_topk_prob")
    if renormalise and router == RouterKind.SOFTMAX_TOPK:
        rule = "has no one meaning with softmax scores: DeepSeek-V2's code then leaves the scale out"
        raise ConfigError(keys.field("norm_topk_prob"), True, rule, "give the model in [model] instead")
    return {
        "router": router,
        "expert_groups": keys.size("n_group") if grouped else None,
        "top_groups": keys.size("topk_group") if grouped else None,
        "routed_scale": keys.number("routed_scaling_factor"),
        "renormalise": renormalise,
    }


def _indexer(keys: ConfigKeys) -> tuple[str, ...]:
    """V3.2's sparse attention picks its keys with an indexer that has weights and a cache of its own."""
    if not keys.has("index_n_heads"):
        return ()
    heads, width = keys.size("index_n_heads"), keys.size("index_head_dim")
    return (f"the sparse-attention indexer ({heads} heads of {width}) and its cached keys",)


FAMILY = Family(
    model_types=("deepseek_v3", "deepseek_v2", "deepseek_v32", "kimi_k2"),
    architecture="Deepseek",
    sizes={
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "vocab": "vocab_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "kv_lora_rank": "kv_lora_rank",
        "qk_nope_head_dim": "qk_nope_head_dim",
        "qk_rope_head_dim": "qk_rope_head_dim",
        "v_head_dim": "v_head_dim",
        "dense_hidden": "intermediate_size",
        "experts": "n_routed_experts",
        "top_k": "num_experts_per_tok",
        "expert_hidden": "moe_intermediate_size",
    },
    rest=_rest,
    origins={
        "q_lora_rank": "q_lora_rank",
        "dense_layers": "first_k_dense_replace",
        "shared_experts": "n_shared_experts",
        "expert_groups": "n_group",
        "top_groups": "topk_group",
        "routed_scale": "routed_scaling_factor",
    },
    defaults={"moe_layer_freq": 1},
)

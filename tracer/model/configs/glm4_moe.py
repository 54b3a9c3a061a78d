"""GLM-4.5: DeepSeek-V3's routing on grouped-query attention.

Sources: the model's config.json; transformers Glm4MoeConfig for the defaults of keys it leaves out;
zyzshishui/slime scripts/models/glm4.5-355B-A32B.sh (sigmoid scores with an expert bias).
"""

from __future__ import annotations

from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.family import Family, dense_form
from tracer.model.router_kind import RouterKind


def _rest(keys: ConfigKeys) -> dict[str, object]:
    """Dense layers, shared experts and routing (this family has no scoring_func key)."""
    layers = keys.size("num_hidden_layers")
    first = keys.size("first_k_dense_replace", low=0, high=layers)
    return {
        "dense_layers": dense_form(layers, range(first, layers)),
        "shared_experts": keys.size("n_shared_experts", low=0),
        "router": RouterKind.SIGMOID_BIAS_TOPK,
        "expert_groups": keys.size("n_group"),
        "top_groups": keys.size("topk_group"),
        "routed_scale": keys.number("routed_scaling_factor"),
        "renormalise": keys.flag("norm_topk_prob"),
    }


FAMILY = Family(
    model_types=("glm4_moe",),
    architecture="Glm4Moe",
    sizes={
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "vocab": "vocab_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "dense_hidden": "intermediate_size",
        "experts": "n_routed_experts",
        "top_k": "num_experts_per_tok",
        "expert_hidden": "moe_intermediate_size",
    },
    rest=_rest,
    origins={
        "dense_layers": "first_k_dense_replace",
        "shared_experts": "n_shared_experts",
        "expert_groups": "n_group",
        "top_groups": "topk_group",
        "routed_scale": "routed_scaling_factor",
    },
    defaults={"n_group": 1, "topk_group": 1, "norm_topk_prob": True},
)

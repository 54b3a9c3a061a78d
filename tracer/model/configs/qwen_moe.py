"""Qwen2-MoE (one gated shared expert) and Qwen3-MoE (none).

A layer has experts unless ``mlp_only_layers`` names it or it is off ``decoder_sparse_step``.
Sources: the models' config.json; transformers Qwen2MoeConfig and Qwen3MoeDecoderLayer.
"""

from __future__ import annotations

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.family import Family, dense_form, optional_head_dim
from tracer.model.router_kind import RouterKind

_SIZES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "vocab": "vocab_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "dense_hidden": "intermediate_size",
    "experts": "num_experts",
    "top_k": "num_experts_per_tok",
    "expert_hidden": "moe_intermediate_size",
}
_DEFAULTS: dict[str, object] = {"decoder_sparse_step": 1, "mlp_only_layers": []}
_SHARED_WIDTH = "shared_expert_intermediate_size"


def _common(keys: ConfigKeys) -> dict[str, object]:
    """Which layers are dense, and routing."""
    layers, step = keys.size("num_hidden_layers"), keys.size("decoder_sparse_step")
    moe = frozenset(range(step - 1, layers, step)) - keys.indices("mlp_only_layers", layers)
    return {
        "dense_layers": dense_form(layers, moe),
        "router": RouterKind.SOFTMAX_TOPK,
        "renormalise": keys.flag("norm_topk_prob"),
    }


def _qwen2(keys: ConfigKeys) -> dict[str, object]:
    """One shared expert of its own width, gated by a sigmoid; head_dim may be absent."""
    shared = {"shared_experts": 1, "shared_hidden": keys.size(_SHARED_WIDTH), "shared_gate": True}
    return _common(keys) | shared | {"head_dim": optional_head_dim(keys)}


def _qwen3(keys: ConfigKeys) -> dict[str, object]:
    """No shared expert; head_dim is not hidden / heads, so the config must state it."""
    if keys.has(_SHARED_WIDTH) and keys.size(_SHARED_WIDTH, low=0):
        rule, width = "must be 0: qwen3_moe has no shared expert", keys.table[_SHARED_WIDTH]
        raise ConfigError(keys.field(_SHARED_WIDTH), width, rule, "check model_type: is it qwen2_moe?")
    return _common(keys) | {"head_dim": keys.size("head_dim")}


QWEN2 = Family(
    model_types=("qwen2_moe",),
    architecture="Qwen2Moe",
    sizes=_SIZES,
    rest=_qwen2,
    origins={"dense_layers": "mlp_only_layers", "shared_hidden": _SHARED_WIDTH, "head_dim": "head_dim"},
    defaults=_DEFAULTS,
)
QWEN3 = Family(
    model_types=("qwen3_moe",),
    architecture="Qwen3Moe",
    sizes=_SIZES,
    rest=_qwen3,
    origins={"dense_layers": "mlp_only_layers", "head_dim": "head_dim"},
    defaults=_DEFAULTS,
)

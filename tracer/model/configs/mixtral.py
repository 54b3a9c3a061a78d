"""Mixtral: every layer has experts, as wide as ``intermediate_size``.

Sources: the model's config.json; transformers 5.24.0 MixtralTopKRouter (softmax over all experts,
top-k, renormalised).
"""

from __future__ import annotations

from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.family import Family, optional_head_dim
from tracer.model.router_kind import RouterKind


def _rest(keys: ConfigKeys) -> dict[str, object]:
    """Head size and routing, which no key states."""
    return {
        "head_dim": optional_head_dim(keys),
        "router": RouterKind.SOFTMAX_TOPK,
        "renormalise": True,
    }


FAMILY = Family(
    model_types=("mixtral",),
    architecture="Mixtral",
    sizes={
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "vocab": "vocab_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "experts": "num_local_experts",
        "top_k": "num_experts_per_tok",
        "expert_hidden": "intermediate_size",
    },
    rest=_rest,
    origins={"head_dim": "head_dim"},
    defaults={},
)

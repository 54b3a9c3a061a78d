"""gpt-oss: every layer has experts, picked by top-k of the logits and weighted by a softmax over the k.

Source: the model's config.json.
"""

from __future__ import annotations

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.family import Family
from tracer.model.router_kind import RouterKind


def _rest(keys: ConfigKeys) -> dict[str, object]:
    """Routing; ``experts_per_token`` repeats ``num_experts_per_tok`` and must agree with it."""
    top_k, again = keys.size("num_experts_per_tok"), keys.optional_size("experts_per_token")
    if again is not None and again != top_k:
        rule = f"must equal num_experts_per_tok={top_k}"
        raise ConfigError(keys.field("experts_per_token"), again, rule, f"write {top_k} or leave it out")
    return {"router": RouterKind.TOPK_SOFTMAX}


FAMILY = Family(
    model_types=("gpt_oss",),
    architecture="GptOss",
    sizes={
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "vocab": "vocab_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "experts": "num_local_experts",
        "top_k": "num_experts_per_tok",
        "expert_hidden": "intermediate_size",
    },
    rest=_rest,
    origins={},
    defaults={},
)

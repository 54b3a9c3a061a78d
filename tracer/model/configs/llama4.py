"""Llama-4: the text model inside ``text_config``; experts in every step-th layer, one shared expert.

Sources: the models' config.json; transformers ``models/llama4/configuration_llama4.py``
(moe_layers = range(step - 1, num_hidden_layers, step)).
"""

from __future__ import annotations

from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.family import Family, dense_form
from tracer.model.router_kind import RouterKind


def _rest(keys: ConfigKeys) -> dict[str, object]:
    """Which layers are dense, the shared expert (as wide as a routed one) and routing."""
    layers = keys.size("num_hidden_layers")
    return {
        "dense_layers": dense_form(layers, _moe_indices(keys, layers)),
        "shared_experts": 1,
        "router": RouterKind.TOPK_SIGMOID,
        "left_out": () if keys.path == "config" else ("the vision encoder",),
    }


def _moe_indices(keys: ConfigKeys, layers: int) -> range | frozenset[int]:
    """0-based layers with experts: ``moe_layers`` where it is given, else every step-th."""
    if keys.has("moe_layers"):
        return keys.indices("moe_layers", layers)
    step = keys.size("interleave_moe_layer_step")
    return range(step - 1, layers, step)


FAMILY = Family(
    model_types=("llama4", "llama4_text"),
    architecture="Llama4",
    sizes={
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "vocab": "vocab_size",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "dense_hidden": "intermediate_size_mlp",
        "experts": "num_local_experts",
        "top_k": "num_experts_per_tok",
        "expert_hidden": "intermediate_size",
    },
    rest=_rest,
    origins={"dense_layers": "interleave_moe_layer_step"},
    defaults={},
)

"""Llama and Qwen3: every layer has the same dense FFN.

Source: the models' config.json.
"""

from __future__ import annotations

from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.family import Family, optional_head_dim

_SIZES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "vocab": "vocab_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "dense_hidden": "intermediate_size",
}


def _llama(keys: ConfigKeys) -> dict[str, object]:
    """``head_dim`` may be absent."""
    return {"head_dim": optional_head_dim(keys)}


def _qwen3(keys: ConfigKeys) -> dict[str, object]:
    """``head_dim`` is not hidden / heads, so the config must state it."""
    return {"head_dim": keys.size("head_dim")}


LLAMA = Family(
    model_types=("llama",),
    architecture="Llama",
    sizes=_SIZES,
    rest=_llama,
    origins={"head_dim": "head_dim"},
    defaults={},
)
QWEN3 = Family(
    model_types=("qwen3",),
    architecture="Qwen3",
    sizes=_SIZES,
    rest=_qwen3,
    origins={"head_dim": "head_dim"},
    defaults={},
)

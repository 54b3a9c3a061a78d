"""Config.json tables for tests: the ones that ship, and random valid ones of every family."""

from __future__ import annotations

import copy
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

Table = dict[str, object]

# family -> a model that ships, whose config is the pattern of the random ones
PATTERNS = {
    "deepseek_v3": "deepseek-v3", "deepseek_v2": "deepseek-v2", "deepseek_v32": "deepseek-v3.2",
    "kimi_k2": "kimi-k2", "mixtral": "mixtral-8x7b", "qwen2_moe": "qwen2-57b-a14b",
    "qwen3_moe": "qwen3-235b-a22b", "qwen3": "qwen3-32b", "gpt_oss": "gpt-oss-120b",
    "llama": "llama-3.1-8b", "llama4": "llama-4-maverick", "glm4_moe": "glm-4.5",
}  # fmt: skip
FAMILIES = sorted(PATTERNS)
MISSING = object()
EXPERT_KEYS = ("n_routed_experts", "num_local_experts", "num_experts")


def shipped_config(name: str) -> Table:
    """A fresh copy of the config of a model that ships."""
    text = (files("tracer") / "data" / "models" / f"{name}.json").read_text(encoding="utf-8")
    config: Table = json.loads(text)["config"]
    return config


def stored_data(name: str) -> dict[str, Any]:
    """A JSON file of tests/data."""
    table: dict[str, Any] = json.loads(
        (Path(__file__).parent / "data" / f"{name}.json").read_text(encoding="utf-8")
    )
    return table


def model_table(config: Table) -> Table:
    """The table that holds the sizes: the config itself, or its text_config."""
    nested = config.get("text_config", config)
    assert isinstance(nested, dict)
    return nested


@st.composite
def configs(draw: st.DrawFn, family: str) -> Table:
    """A valid config of ``family`` with every size drawn."""
    config = copy.deepcopy(shipped_config(PATTERNS[family]))
    table = model_table(config)
    layers, kv_heads = draw(st.integers(1, 60)), draw(st.integers(1, 16))
    heads = kv_heads * draw(st.integers(1, 8))
    sizes: Table = {
        "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads,
        "num_attention_heads": heads,
    }
    sizes["hidden_size"] = heads * draw(st.integers(1, 300))
    for key in ("vocab_size", "intermediate_size", "moe_intermediate_size", "intermediate_size_mlp"):
        sizes[key] = draw(st.integers(1, 20000))
    for key in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "head_dim"):
        sizes[key] = draw(st.integers(1, 600))
    sizes["shared_expert_intermediate_size"] = draw(st.integers(1, 999)) if family == "qwen2_moe" else 0
    sizes |= draw(_experts()) | draw(_layer_kinds(layers))
    table |= {key: value for key, value in sizes.items() if key in table}
    table["tie_word_embeddings"] = draw(st.booleans())
    return config


@st.composite
def _experts(draw: st.DrawFn) -> Table:
    """Experts in equal groups, and a top-k that the groups kept can fill."""
    groups, per_group = draw(st.integers(1, 8)), draw(st.integers(1, 64))
    kept = draw(st.integers(1, groups))
    top_k = draw(st.integers(1, min(kept * per_group, 16)))
    experts: Table = dict.fromkeys(EXPERT_KEYS, groups * per_group)
    experts |= {
        "n_group": groups,
        "topk_group": kept,
        "num_experts_per_tok": top_k,
        "experts_per_token": top_k,
    }
    return experts | {
        "n_shared_experts": draw(st.integers(0, 3)),
        "q_lora_rank": draw(st.none() | st.integers(1, 999)),
    }


@st.composite
def _layer_kinds(draw: st.DrawFn, layers: int) -> Table:
    """Which layers are dense, in each family's own way, and which attention they have."""
    kinds = st.sampled_from(["sliding_attention", "full_attention"])
    return {
        "first_k_dense_replace": draw(st.integers(0, layers)),
        "interleave_moe_layer_step": draw(st.integers(1, layers)),
        "decoder_sparse_step": draw(st.integers(1, layers)),
        "mlp_only_layers": draw(st.lists(st.integers(0, layers - 1), unique=True, max_size=5)),
        "layer_types": draw(st.lists(kinds, min_size=layers, max_size=layers)),
    }


def changed(family: str, **values: object) -> Table:
    """The pattern of a family with some keys of its model table replaced, or left out."""
    config = shipped_config(PATTERNS[family])
    table = model_table(config)
    table |= values
    for key in [key for key, value in values.items() if value is MISSING]:
        del table[key]
    return config

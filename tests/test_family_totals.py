"""Families whose totals their model classes gave on torch's meta device, small variants of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracer.model.configs import read_config
from tracer.model.layers import AttentionType, Gate, HeadAttention, LinearAttention, Mamba2
from tracer.model.parameters import count_parameters

TABLE = (Path(__file__).parent / "data" / "family_totals.json").read_text(encoding="utf-8")
MODELS = json.loads(TABLE)["models"]
BY_TYPE = {each["config"]["model_type"]: each["config"] for each in MODELS}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model["config"]["model_type"]))
def test_totals_are_the_classes(model: dict[str, Any]) -> None:
    assert count_parameters(read_config(model["config"]).spec).total == model["total"]


def kinds(config: dict[str, Any]) -> list[Any]:
    return [kind.attention for kind in read_config(config).spec.layer_kinds]


def test_which_layers_are_what() -> None:
    bamba = kinds(BY_TYPE["bamba"])
    assert [isinstance(each, Mamba2) for each in bamba] == [True, True, False, True, True, True]
    lfm2 = kinds(BY_TYPE["lfm2"])
    assert [number for number, each in enumerate(lfm2) if isinstance(each, HeadAttention)] == [2, 5]
    assert lfm2[0].type is AttentionType.SHORT_CONV
    assert (lfm2[0].state_values, lfm2[0].conv_values) == (0, 2 * 2560)
    afmoe = kinds(BY_TYPE["afmoe"])
    assert [number + 1 for number, each in enumerate(afmoe[:8]) if each.window is None] == [4, 8]
    assert {each.gate for each in afmoe} == {Gate.ELEMENT}


RING = {
    "model_type": "bailing_moe_linear", "architectures": ["BailingMoeLinearV2ForCausalLM"],
    "num_hidden_layers": 20, "layer_group_size": 5, "first_k_dense_replace": 1, "hidden_size": 2048,
    "intermediate_size": 5120, "moe_intermediate_size": 512, "num_experts": 256, "num_experts_per_tok": 8,
    "num_shared_experts": 1, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
    "use_qk_norm": True, "vocab_size": 157184, "n_group": 8, "topk_group": 4, "score_function": "sigmoid",
    "routed_scaling_factor": 2.5, "norm_topk_prob": True, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}  # fmt: skip


def test_ring_linear_is_lightning_and_grouped_queries_in_groups_of_layers() -> None:
    """By a written count: the model's code is in no library that was built."""
    found = kinds(RING)
    full_layers = [number for number, each in enumerate(found, 1) if isinstance(each, HeadAttention)]
    assert full_layers == [5, 10, 15, 20]
    assert {each.type for each in found if isinstance(each, LinearAttention)} == {AttentionType.LIGHTNING}
    hidden, width = 2048, 16 * 128
    linear = 5 * hidden * width + width + 2 * 128  # q, k, v, gate, output; the output's norm; q/k norms
    full = 2 * hidden * width + 2 * hidden * 4 * 128 + 2 * 128
    moe = 256 * hidden + (256 + 1) * 3 * hidden * 512
    norms = 20 * 2 * hidden + hidden
    total = 16 * linear + 4 * full + 19 * moe + 3 * hidden * 5120 + norms + 2 * 157184 * hidden
    assert count_parameters(read_config(RING).spec).total == total


def test_ring_with_a_latent_has_mla_in_its_full_layers() -> None:
    latent = RING | {
        "model_type": "bailing_hybrid", "architectures": ["BailingMoeV2_5ForCausalLM"], "kv_lora_rank": 512,
        "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    }  # fmt: skip
    found = kinds(latent)
    assert [each.type for each in found[:5]] == [AttentionType.LIGHTNING] * 4 + [AttentionType.MLA]
    assert found[4].gate is Gate.NONE
    delta = kinds(latent | {"short_conv_kernel_size": 4, "architectures": ["BailingHybridForCausalLM"]})
    assert [each.type for each in delta[:5]] == [AttentionType.KDA] * 4 + [AttentionType.MLA]
    assert delta[4].gate is Gate.HEAD

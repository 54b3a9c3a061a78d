"""Config readers: what ships, what each family says in its own keys, the defaults taken."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_configs import (
    FAMILIES,
    MISSING,
    Table,
    changed,
    configs,
    model_table,
    shipped_config,
)

from tracer.errors import ConfigError
from tracer.model.configs import (
    model_preset,
    model_preset_names,
    read_config,
    read_config_file,
    read_model_preset,
)
from tracer.model.layers import LatentAttention
from tracer.model.spec import ModelSpec


def test_every_model_that_ships_reads_and_round_trips() -> None:
    assert len(model_preset_names()) == 49
    for name in model_preset_names():
        spec = model_preset(name.upper())
        assert ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
        assert spec.name is not None and spec.name.lower() == name
        assert spec.source is not None and len(spec.source) > 20


def test_deepseek_v3() -> None:
    spec = model_preset("deepseek-v3")
    assert (spec.layers, spec.dense_layers, spec.experts, spec.top_k, spec.shared_hidden) == (
        61,
        3,
        256,
        8,
        2048,
    )
    assert (spec.mla, spec.qk_head_dim, spec.v_head_dim, spec.head_dim) == (True, 192, 128, None)
    assert (spec.router, spec.expert_groups, spec.top_groups) == ("sigmoid_bias_topk", 8, 4)
    assert (spec.routed_scale, spec.renormalise) == (2.5, True)
    assert (spec.weights, spec.expert_weights, spec.attention_weights) == (
        "bf16",
        "fp8_block128",
        "fp8_block128",
    )
    assert spec.left_out == ("1 multi-token-prediction layer(s)",)


def test_deepseek_v2_limits_groups_and_v2_lite_does_not() -> None:
    spec, lite = model_preset("deepseek-v2"), model_preset("deepseek-v2-lite")
    assert (spec.router, spec.expert_groups, spec.top_groups, spec.renormalise) == (
        "softmax_topk",
        8,
        3,
        False,
    )
    assert (spec.routed_scale, spec.shared_experts, spec.shared_hidden) == (16.0, 2, 3072)
    assert (lite.router, lite.expert_groups, lite.top_groups, lite.q_lora_rank) == (
        "softmax_topk",
        None,
        None,
        None,
    )


def test_v32_has_an_indexer_in_every_layer() -> None:
    read = read_model_preset("deepseek-v3.2")
    kind = read.spec.kind_of(61)
    assert isinstance(kind.attention, LatentAttention)
    assert (kind.attention.type, kind.attention.index_heads, kind.attention.index_dim) == ("dsa", 64, 128)
    assert read.spec.left_out == ("1 multi-token-prediction layer(s)",)


def test_glm_takes_class_defaults_for_its_nulls_and_says_so() -> None:
    read = read_model_preset("glm-4.5")
    assert (read.spec.expert_groups, read.spec.top_groups, read.spec.renormalise) == (1, 1, True)
    for key, value in (("n_group", 1), ("topk_group", 1), ("norm_topk_prob", True)):
        assert f"config.{key} is absent: takes the model class's default, {value!r}" in read.warnings


def test_maverick_interleaves_experts_from_its_nested_table() -> None:
    spec, scout = model_preset("llama-4-maverick"), model_preset("llama-4-scout")
    assert [layer for layer in range(1, 49) if spec.is_moe(layer)] == list(range(2, 49, 2))
    assert (scout.dense_layers, scout.moe_layers) == (0, 48)
    assert (spec.router, spec.dense_hidden, spec.expert_hidden, spec.shared_hidden) == (
        "topk_sigmoid",
        16384,
        8192,
        8192,
    )
    listed = read_config(changed("llama4", moe_layers=[0, 1, 47])).spec
    assert [layer for layer in range(1, 49) if listed.is_moe(layer)] == [1, 2, 48]


def test_llama4_text_reads_without_the_outer_table() -> None:
    outer = shipped_config("llama-4-scout")
    read = read_config(model_table(outer))
    assert read.spec.left_out == ()
    assert read.spec.experts == 16


def test_gpt_oss() -> None:
    read = read_model_preset("gpt-oss-120b")
    assert (read.spec.router, read.spec.expert_weights, read.spec.attention_weights) == (
        "topk_softmax",
        "mxfp4",
        None,
    )
    windows = [kind.attention.window for kind in read.spec.layer_kinds if kind.attention is not None]
    assert windows == [128, None] * 18


def test_qwen2_has_one_gated_shared_expert_of_its_own_width() -> None:
    spec = model_preset("qwen2-57b-a14b")
    assert (spec.shared_experts, spec.shared_hidden, spec.shared_gate, spec.renormalise) == (
        1,
        20480,
        True,
        False,
    )
    assert spec.head_dim == 128


def test_qwen3_off_step_and_listed_layers_are_dense() -> None:
    spec = read_config(
        changed("qwen3_moe", num_hidden_layers=6, decoder_sparse_step=2, mlp_only_layers=[3])
    ).spec
    assert [layer for layer in range(1, 7) if spec.is_moe(layer)] == [2, 6]


def test_deepseek_layers_off_the_frequency_are_dense() -> None:
    """modeling_deepseek.py: experts where index >= first_k_dense_replace and index % moe_layer_freq == 0."""
    config = changed("deepseek_v3", num_hidden_layers=8, first_k_dense_replace=3, moe_layer_freq=2)
    spec = read_config(config).spec
    assert [layer for layer in range(1, 9) if spec.is_moe(layer)] == [5, 7]


def test_absent_keys_with_a_class_default_warn() -> None:
    read = read_config(changed("deepseek_v3", moe_layer_freq=MISSING, tie_word_embeddings=MISSING))
    assert "config.moe_layer_freq is absent: takes the model class's default, 1" in read.warnings
    assert "config.tie_word_embeddings is absent: takes the model class's default, False" in read.warnings


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("deepseek-v33", "is not a model that ships; did you mean 'deepseek-v3'"),
        ("../hardware", "is not a model that ships"),
        ("", "is not a model that ships"),
        (None, "is not a model that ships"),
    ],
)
def test_a_preset_that_does_not_ship(name: object, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"model.preset(=.*)? {message}"):
        model_preset(name)


def test_modules_left_unquantised_keep_the_plain_dtype() -> None:
    quantization = {
        "quant_method": "fp8",
        "modules_to_not_convert": ["lm_head", "model.layers.*.self_attn", "gate"],
    }
    spec = read_config(changed("deepseek_v3", quantization_config=quantization)).spec
    assert (spec.attention_weights, spec.dense_weights, spec.weights) == (None, "fp8", "bf16")
    plain = read_config(changed("deepseek_v3", quantization_config=None)).spec
    assert (plain.weights, plain.expert_weights) == ("bf16", None)
    gates = [f"model.layers.{layer}.mlp.gate" for layer in range(61)]
    listed = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": gates}
    assert (
        read_config(changed("deepseek_v3", quantization_config=listed)).spec.expert_weights == "fp8_block128"
    )


def test_a_config_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(shipped_config("mixtral-8x7b")), encoding="utf-8")
    read = read_config_file(path)
    assert (read.spec.experts, read.spec.source) == (8, str(path))


@given(st.sampled_from(FAMILIES).flatmap(configs))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_random_configs_of_every_family_read_and_round_trip(config: Table) -> None:
    before = copy.deepcopy(config)
    spec = read_config(config).spec
    assert config == before
    assert ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert spec.layers == model_table(config)["num_hidden_layers"]
    assert spec.moe_layers == sum(spec.is_moe(layer) for layer in range(1, spec.layers + 1))

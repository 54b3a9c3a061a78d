"""Config readers: what ships, what each family says in its own keys, and every way to be malformed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_configs import PATTERNS, Table, configs, model_table, shipped_config, stored_data

from tracer.errors import ConfigError
from tracer.model_config import (
    model_preset,
    model_preset_names,
    read_config,
    read_config_file,
    read_model_preset,
)
from tracer.model_spec import ModelSpec

FAMILIES = sorted(PATTERNS)
ATTENTION = ["num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads", "num_key_value_heads"]
LATENT = ["kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"]
DEEPSEEK = [
    *ATTENTION,
    *LATENT,
    "intermediate_size",
    "moe_intermediate_size",
    "n_routed_experts",
    "num_experts_per_tok",
]
REQUIRED_SIZES = {
    "deepseek_v3": [*DEEPSEEK, "n_group", "topk_group"],
    "deepseek_v2": [*DEEPSEEK, "n_group", "topk_group"],
    "deepseek_v32": [*DEEPSEEK, "n_group", "topk_group", "index_head_dim"],
    "kimi_k2": [*DEEPSEEK, "n_group", "topk_group"],
    "mixtral": [*ATTENTION, "intermediate_size", "num_local_experts", "num_experts_per_tok"],
    "qwen2_moe": [*ATTENTION, "moe_intermediate_size", "num_experts", "shared_expert_intermediate_size"],
    "qwen3_moe": [*ATTENTION, "head_dim", "moe_intermediate_size", "num_experts", "num_experts_per_tok"],
    "qwen3": [*ATTENTION, "head_dim", "intermediate_size"],
    "gpt_oss": [*ATTENTION, "head_dim", "intermediate_size", "num_local_experts", "num_experts_per_tok"],
    "llama": [*ATTENTION, "intermediate_size"],
    "llama4": [
        *ATTENTION,
        "head_dim",
        "intermediate_size",
        "intermediate_size_mlp",
        "interleave_moe_layer_step",
    ],
    "glm4_moe": [*ATTENTION, "head_dim", "n_routed_experts", "moe_intermediate_size"],
}
SIZE_CASES = [(family, key) for family in FAMILIES for key in REQUIRED_SIZES[family]]
MISSING = object()
BAD_SIZES = [MISSING, None, 0, -1, True, "4096", 1.5, float("nan"), float("inf"), 10**30, [], {}, [8]]


def changed(family: str, **values: object) -> Table:
    """The pattern of a family with some keys of its model table replaced, or left out."""
    config = shipped_config(PATTERNS[family])
    table = model_table(config)
    table |= values
    for key in [key for key, value in values.items() if value is MISSING]:
        del table[key]
    return config


def test_every_model_that_ships_reads_and_round_trips() -> None:
    assert len(model_preset_names()) == 21
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


def test_v32_says_that_its_indexer_is_left_out() -> None:
    read = read_model_preset("deepseek-v3.2")
    assert (
        "no count includes the sparse-attention indexer (64 heads of 128) and its cached keys"
        in read.warnings
    )
    assert read.spec.left_out[0].startswith("the sparse-attention indexer")


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
    assert "attention windows are not counted: every layer keeps the K/V of every token" in read.warnings


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


def test_absent_keys_with_a_class_default_warn() -> None:
    read = read_config(changed("deepseek_v3", moe_layer_freq=MISSING, tie_word_embeddings=MISSING))
    assert "config.moe_layer_freq is absent: takes the model class's default, 1" in read.warnings
    assert "config.tie_word_embeddings is absent: takes the model class's default, False" in read.warnings


@pytest.mark.parametrize("name", ["deepseek-v4-flash", "deepseek-v4-pro", "glm-5", "minimax-m2.5"])
def test_models_without_a_checked_total_are_refused_with_the_reason(name: str) -> None:
    stored = stored_data("refused_configs")[name]
    assert isinstance(stored, dict)
    with pytest.raises(
        ConfigError, match=r"config.model_type=.* is not read: .*no parameter total of it has been checked"
    ):
        read_config(stored["config"])
    with pytest.raises(ConfigError, match=rf"model.preset='{name}' is not read: "):
        model_preset(name)


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
    with pytest.raises(ConfigError, match=rf"model.preset=.* {message}"):
        model_preset(name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", BAD_SIZES, ids=lambda value: "missing" if value is MISSING else repr(value)[:9]
)
def test_a_malformed_size_is_refused_by_its_key(value: object) -> None:
    for family, key in SIZE_CASES:
        path = r"config\.text_config" if family == "llama4" else "config"
        refusal = rf"^{path}\.{key}=.* (must be a whole number|is needed to read this config)"
        with pytest.raises(ConfigError, match=refusal):
            read_config(changed(family, **{key: value}))


@pytest.mark.parametrize(
    ("family", "values", "message"),
    [
        ("deepseek_v3", {"model_type": MISSING}, "config.model_type=None must name a family"),
        ("deepseek_v3", {"model_type": ["deepseek_v3"]}, "config.model_type=.* must name a family"),
        (
            "deepseek_v3",
            {"model_type": "deepseek_v9"},
            "is not a family this reader knows; did you mean 'deepseek_v3",
        ),
        (
            "deepseek_v3",
            {"model_type": "mixtral"},
            "config.architectures=.* is not what model_type='mixtral' runs",
        ),
        ("qwen3_moe", {"model_type": "qwen3"}, "config.architectures='Qwen3MoeForCausalLM' is not what"),
        (
            "deepseek_v3",
            {"model_type": "mixtral", "architectures": None},
            "config.num_local_experts=None is needed",
        ),
        ("mixtral", {"model_type": "deepseek_v3", "architectures": []}, "config.kv_lora_rank=None is needed"),
        ("mixtral", {"architectures": "Mixtral"}, "config.architectures='Mixtral' must be a list of texts"),
        (
            "deepseek_v3",
            {"scoring_func": "sqrtsoftplus"},
            "config.scoring_func='sqrtsoftplus' is not one this reader",
        ),
        ("deepseek_v3", {"scoring_func": MISSING}, "config.scoring_func=None is needed"),
        (
            "deepseek_v3",
            {"topk_method": "greedy"},
            "config.topk_method='greedy' is not one this reader knows",
        ),
        (
            "deepseek_v2",
            {"topk_method": "noaux_tc"},
            "config.topk_method='noaux_tc' is not one this reader knows",
        ),
        (
            "deepseek_v2",
            {"norm_topk_prob": True},
            "config.norm_topk_prob=True has no one meaning with softmax",
        ),
        ("deepseek_v3", {"norm_topk_prob": 1}, "config.norm_topk_prob=1 must be true or false"),
        ("deepseek_v3", {"q_lora_rank": MISSING}, "config.q_lora_rank=None is needed"),
        ("deepseek_v3", {"q_lora_rank": 0}, "config.q_lora_rank=0 must be a whole number from 1"),
        ("deepseek_v3", {"n_group": 7}, "config.n_group=7 must divide experts=256; try 4"),
        ("deepseek_v3", {"topk_group": 9}, "config.topk_group=9 must be at most expert_groups=8"),
        (
            "deepseek_v3",
            {"first_k_dense_replace": 62},
            "config.first_k_dense_replace=62 must be a whole number from 0",
        ),
        ("deepseek_v3", {"first_k_dense_replace": None}, "config.first_k_dense_replace=None is needed"),
        (
            "deepseek_v3",
            {"routed_scaling_factor": float("nan")},
            "config.routed_scaling_factor=nan must be a number",
        ),
        (
            "deepseek_v3",
            {"num_experts_per_tok": 999},
            "config.num_experts_per_tok=999 must be at most experts=256",
        ),
        (
            "deepseek_v3",
            {"num_key_value_heads": 100},
            "config.num_key_value_heads=100 must divide heads=128; try 64",
        ),
        (
            "deepseek_v3",
            {"tie_word_embeddings": "no"},
            "config.tie_word_embeddings='no' must be true or false",
        ),
        (
            "deepseek_v3",
            {"num_nextn_predict_layers": -1},
            "config.num_nextn_predict_layers=-1 must be a whole",
        ),
        ("deepseek_v3", {"torch_dtype": "int3"}, "config.torch_dtype='int3' is not one this reader knows"),
        ("deepseek_v3", {"torch_dtype": 3}, "config.torch_dtype=3 must be a text"),
        ("mixtral", {"hidden_size": 4097}, "config.head_dim=None is needed to read this config"),
        ("gpt_oss", {"experts_per_token": 5}, "config.experts_per_token=5 must equal num_experts_per_tok=4"),
        (
            "gpt_oss",
            {"layer_types": ["linear_attention"] * 36},
            "config.layer_types='linear_attention' is not a kind",
        ),
        (
            "gpt_oss",
            {"layer_types": ["full_attention"]},
            "config.layer_types='1 entries' must have one entry for each",
        ),
        ("gpt_oss", {"layer_types": [3]}, r"config.layer_types=\[3\] must be a list of texts"),
        (
            "qwen3_moe",
            {"mlp_only_layers": [94]},
            "config.mlp_only_layers=94 must be a whole number from 0 to 93",
        ),
        ("qwen3_moe", {"mlp_only_layers": "all"}, "config.mlp_only_layers='all' must be a list of 0-based"),
        (
            "qwen3_moe",
            {"shared_expert_intermediate_size": 64},
            "config.shared_expert_intermediate_size=64 must be 0",
        ),
        (
            "llama4",
            {"moe_layers": [48]},
            "config.text_config.moe_layers=48 must be a whole number from 0 to 47",
        ),
    ],
)
def test_each_rule_names_its_key(family: str, values: Table, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_config(changed(family, **values))


@pytest.mark.parametrize("nested", [None, 3, [], "text"])
def test_a_nested_table_that_is_none(nested: object) -> None:
    config = shipped_config("llama-4-scout") | {"text_config": nested}
    with pytest.raises(ConfigError, match=r"config\.text_config=.* (must be a table|is needed)"):
        read_config(config)


@pytest.mark.parametrize("config", [None, [], "config.json", 3, {3: "model_type"}])
def test_a_config_that_is_no_table(config: object) -> None:
    with pytest.raises(ConfigError, match=r"config=.* must be a table of named values"):
        read_config(config)


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        ([], r"quantization_config=\[\] must be a table"),
        ({}, "quantization_config.quant_method=None is needed"),
        ({"quant_method": "awq"}, "quantization_config.quant_method='awq' is not one this reader knows"),
        ({"quant_method": ["fp8"]}, r"quantization_config.quant_method=\['fp8'\] must be a text"),
        (
            {"quant_method": "fp8", "fmt": "e5m2"},
            "quantization_config.fmt='e5m2' is not one this reader knows",
        ),
        (
            {"quant_method": "fp8", "weight_block_size": [64, 64]},
            r"weight_block_size=\[64, 64\] is not a block size",
        ),
        ({"quant_method": "fp8", "weight_block_size": "128"}, "weight_block_size='128' is not a block size"),
        ({"quant_method": "fp8", "ignored_layers": "all"}, "ignored_layers='all' must be a list of texts"),
        (
            {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.3.self_attn"]},
            "modules_to_not_convert='model.layers.3.self_attn' has .* cannot match to one whole part",
        ),
        (
            {"quant_method": "mxfp4", "modules_to_not_convert": ["vision"]},
            "modules_to_not_convert='vision' has",
        ),
    ],
)
def test_quantization_that_this_reader_cannot_count(quantization: object, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"config\.(quantization_config\.)?{message}"):
        read_config(changed("deepseek_v3", quantization_config=quantization))


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


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_not_json(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"model.config=.* is not a JSON file"):
        read_config_file(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model.config=.* cannot be read"):
        read_config_file(tmp_path / "none.json")
    with pytest.raises(ConfigError, match=r"model.config=.* cannot be read"):
        read_config_file(tmp_path)


@given(st.sampled_from(FAMILIES).flatmap(configs))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_random_configs_of_every_family_read_and_round_trip(config: Table) -> None:
    before = copy.deepcopy(config)
    spec = read_config(config).spec
    assert config == before
    assert ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert spec.layers == model_table(config)["num_hidden_layers"]
    assert spec.moe_layers == sum(spec.is_moe(layer) for layer in range(1, spec.layers + 1))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(MISSING),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(FAMILIES), st.data())
@settings(max_examples=400)
def test_any_damage_reads_or_is_refused_with_the_one_error(family: str, data: st.DataObject) -> None:
    config = shipped_config(PATTERNS[family])
    tables = [config, *(value for value in config.values() if isinstance(value, dict))]
    for _ in range(data.draw(st.integers(1, 3))):
        table = data.draw(st.sampled_from(tables))
        key = data.draw(st.sampled_from(sorted(table)))
        table[key] = data.draw(ANYTHING)
    try:
        read_config(config)
    except ConfigError as error:
        assert error.field.startswith(("config", "model"))


@given(st.dictionaries(st.text(max_size=8) | st.just("model_type"), ANYTHING | st.sampled_from(FAMILIES)))
def test_nonsense_is_refused_with_the_one_error(config: Table) -> None:
    with pytest.raises(ConfigError, match=r"^config"):
        read_config(config)

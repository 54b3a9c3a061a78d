"""Config readers: every way a config can be malformed, each refused by its key."""

from __future__ import annotations

from pathlib import Path

import pytest
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from model_configs import (
    FAMILIES,
    MISSING,
    PATTERNS,
    Table,
    changed,
    shipped_config,
)

from tracer.errors import ConfigError
from tracer.model.configs import read_config, read_config_file

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
BAD_SIZES = [MISSING, None, 0, -1, True, "4096", 1.5, float("nan"), float("inf"), 10**30, [], {}, [8]]


@pytest.mark.parametrize(
    "value", BAD_SIZES, ids=lambda value: "missing" if value is MISSING else repr(value)[:9]
)
def test_a_malformed_size_is_refused_by_its_key(value: object) -> None:
    for family, key in SIZE_CASES:
        path = r"config\.text_config" if family == "llama4" else "config"
        refusal = (
            rf"^{path}\.{key}(=.*| is not given and) (must be a whole number|is needed to read this config)"
        )
        with pytest.raises(ConfigError, match=refusal):
            read_config(changed(family, **{key: value}))


@pytest.mark.parametrize(
    ("family", "values", "message"),
    [
        ("deepseek_v3", {"model_type": MISSING}, "config.model_type is not given and must name a family"),
        ("deepseek_v3", {"model_type": ["deepseek_v3"]}, "config.model_type=.* must name a family"),
        (
            "deepseek_v3",
            {"model_type": "deepseek_v9", "architectures": None, "hc_mult": 4},
            "config.model_type='deepseek_v9' is not a family this reader knows, and its key 'hc_mult' names",
        ),
        (
            "llama",
            {"model_type": "lama", "architectures": None, "hidden_act": "gelu"},
            "hidden_act='gelu' does not say whether the FFN is gated",
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
            "config.num_local_experts is not given and is needed",
        ),
        (
            "mixtral",
            {"model_type": "deepseek_v3", "architectures": []},
            "config.kv_lora_rank is not given and is needed",
        ),
        ("mixtral", {"architectures": "Mixtral"}, "config.architectures='Mixtral' must be a list of texts"),
        (
            "deepseek_v3",
            {"scoring_func": "sqrtsoftplus"},
            "config.scoring_func='sqrtsoftplus' is not one this reader",
        ),
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
        ("deepseek_v3", {"q_lora_rank": MISSING}, "config.q_lora_rank is not given and is needed"),
        ("deepseek_v3", {"q_lora_rank": 0}, "config.q_lora_rank=0 must be a whole number from 1"),
        ("deepseek_v3", {"n_group": 7}, "config.n_group=7 must divide experts=256; try 4"),
        ("deepseek_v3", {"topk_group": 9}, "config.topk_group=9 must be at most expert_groups=8"),
        (
            "deepseek_v3",
            {"first_k_dense_replace": 62},
            "config.first_k_dense_replace=62 must be a whole number from 0",
        ),
        (
            "glm4_moe",
            {"first_k_dense_replace": 93},
            r"config.first_k_dense_replace=93 must be a whole number",
        ),
        (
            "deepseek_v3",
            {"first_k_dense_replace": None},
            "config.first_k_dense_replace is not given and is needed",
        ),
        (
            "deepseek_v3",
            {"routed_scaling_factor": float("nan")},
            "config.routed_scaling_factor=nan must be a number",
        ),
        (
            "deepseek_v3",
            {"num_experts_per_tok": 129, "n_routed_experts": 128},
            "config.num_experts_per_tok=129 must be at most experts=128",
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
        ("mixtral", {"hidden_size": 4097}, "config.head_dim is not given and is needed to read this config"),
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
    with pytest.raises(
        ConfigError, match=r"config\.text_config(=.*| is not given and) (must be a table|is needed)"
    ):
        read_config(config)


@pytest.mark.parametrize("config", [None, [], "config.json", 3, {3: "model_type"}])
def test_a_config_that_is_no_table(config: object) -> None:
    with pytest.raises(ConfigError, match=r"config(=.*| is not given and) must be a table of named values"):
        read_config(config)


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        ([], r"quantization_config=\[\] must be a table"),
        ({}, "quantization_config.quant_method is not given and is needed"),
        ({"quant_method": "aqlm"}, "quantization_config.quant_method='aqlm' is not one this reader knows"),
        ({"quant_method": "awq", "bits": 3}, "quantization_config.bits=3 with groups of 128 is not a format"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4_SVD"}, "quant_algo='NVFP4_SVD' is a format this"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 3}}}},
            "config_groups.g.weights='a group' is 3 bits of type 'int'",
        ),
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
            {"quant_method": "fp8", "modules_to_not_convert": ["re:(a+)+$"]},
            r"quantization_config=.* repeats a group, which",
        ),
        (
            {"quant_method": "fp8", "modules_to_not_convert": ["re:*a"]},
            r"quantization_config=.* is no regular expression",
        ),
        (
            {"quant_method": "fp8", "modules_to_not_convert": ["*" * 9]},
            r"quantization_config=.* repeats more than 4 times",
        ),
    ],
)
def test_quantization_that_this_reader_cannot_count(quantization: object, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"config\.(quantization_config\.)?{message}"):
        read_config(changed("deepseek_v3", quantization_config=quantization))


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


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(MISSING),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(FAMILIES), st.data())
@settings(max_examples=draws(400))
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

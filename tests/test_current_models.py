"""This year's models: totals of the real classes, how they are stored, and what their layers keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from model_configs import changed, shipped_config, stored_data
from test_schemas import check

from app.cli import tokentrip
from tracer.errors import ConfigError
from tracer.memory.anatomy import anatomy
from tracer.memory.fits import check_fits
from tracer.memory.kv_bytes import (
    kv_bytes_of_layer,
    kv_bytes_per_token,
    sequence_bytes,
    state_bytes_per_sequence,
)
from tracer.memory.kv_owners import kv_owners, kv_share
from tracer.memory.residency import residency_of
from tracer.model.configs import model_preset, read_config, read_config_file
from tracer.model.dtype import Dtype
from tracer.model.layers import LayerKind, LinearAttention, Mamba2
from tracer.model.parameters import count_parameters
from tracer.model.spec import ModelSpec
from tracer.model.weight_format import WeightFormat
from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario
from tracer.trip.hop import HopKind
from tracer.trip.trip import take_trip

TOTALS: dict[str, dict[str, Any]] = stored_data("current_models")["models"]


@pytest.mark.parametrize("name", sorted(TOTALS))
def test_totals_of_the_model_classes(name: str) -> None:
    spec = model_preset(name)
    assert count_parameters(spec).total == TOTALS[name]["total"]
    assert ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_gpt2_in_megatron_has_a_plain_ffn_biases_and_a_position_table() -> None:
    """24 layers, h 1,024, 4h, GELU, vocabulary padded to 50,304: 354,871,296."""
    table = {"layers": 24, "hidden": 1024, "vocab": 50304, "heads": 16, "dense_hidden": 4096, "gated": False}
    flags = dict.fromkeys(["ffn_bias", "qkv_bias", "out_bias", "norm_bias", "tie_embeddings"], True)
    spec = ModelSpec.from_dict(table | flags | {"positions": 1024})
    assert count_parameters(spec).total == 354_871_296
    assert ModelSpec.from_dict(spec.to_dict()) == spec


def test_published_active_parameters() -> None:
    """gpt-oss counts no embedding; the others by their names: A17B, A10B, A3B, A12B, 10B, A4B."""
    for name, billions in (
        ("qwen3.5-397b-a17b", 17), ("qwen3.5-35b-a3b", 3), ("nemotron-3-nano-30b-a3b", 3),
        ("nemotron-3-super-120b-a12b-fp8", 12), ("gemma-4-26b-a4b", 4),
    ):  # fmt: skip
        count = count_parameters(model_preset(name))
        assert abs(count.active / 1e9 - billions) < 1, name


@pytest.mark.parametrize(("model_type", "billions"), [("jamba", 12.0), ("zaya", 0.76)])
def test_active_parameters_of_mamba_hybrids(model_type: str, billions: float) -> None:
    """Jamba-v0.1 has 12B active; ZAYA1 760M, its tied embedding apart."""
    models = stored_data("family_totals")["models"]
    config = max(
        (each for each in models if each["config"]["model_type"] == model_type),
        key=lambda each: each["total"],
    )["config"]
    embedding = config["vocab_size"] * config["hidden_size"] if model_type == "zaya" else 0
    active = count_parameters(read_config(config).spec).active - embedding
    assert active / 1e9 == pytest.approx(billions, rel=0.02)


# storage


def test_a_quantisation_file_beside_the_config_is_read(tmp_path: Path) -> None:
    stored = json.loads((Path("tracer/data/models") / "llama-3.1-70b-fp8.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(stored["config"]), encoding="utf-8")
    plain = count_parameters(read_config_file(tmp_path / "config.json").spec)
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(stored["hf_quant_config"]), encoding="utf-8")
    fp8 = count_parameters(read_config_file(tmp_path / "config.json").spec)
    assert (round(plain.weight_bytes / 1e9, 1), round(fp8.weight_bytes / 1e9, 1)) == (141.1, 72.7)
    linear = 80 * (2 * 8192 * 8192 + 2 * 1024 * 8192 + 3 * 8192 * 28672)
    assert fp8.weight_bytes == linear + 2 * (2 * 128256 * 8192 + 161 * 8192)


def test_a_dense_fp8_model_is_read() -> None:
    spec = model_preset("qwen3-32b-fp8")
    assert (spec.attention_weights, spec.dense_weights, spec.weights) == (
        "fp8_block128",
        "fp8_block128",
        "bf16",
    )


@pytest.mark.parametrize(
    ("table", "stored"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block128"),
        ({"quant_method": "fbgemm_fp8"}, "fp8_channel"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4_zero_g128"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "int4_zero_g32"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "int8_zero_g128"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True}, "nf4_double"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8_channel"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_algo": "FP8"}, "fp8"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "g": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 32}}
                },
            },
            "int4_g32",
        ),
    ],
)
def test_each_method_stores_the_linear_layers(table: dict[str, object], stored: str) -> None:
    config = shipped_config("llama-3.1-8b") | {"quantization_config": table}
    spec = read_config(config).spec
    assert (spec.attention_weights, spec.dense_weights, spec.stored) == (stored, stored, ())
    plain = read_config(config | {"quantization_config": None}).spec
    ends = 2 * 2 * 128256 * 4096 + 2 * 65 * 4096
    linear = (count_parameters(plain).weight_bytes - ends) // 2
    bits = 8 * (count_parameters(spec).weight_bytes - ends) / linear
    low, high = (4, 5) if stored.startswith(("int4", "nf4", "nvfp4")) else (8, 8.3)
    assert low <= bits <= high


def test_groups_and_ignored_modules_differ_by_layer_and_matrix() -> None:
    groups = {
        "a": {
            "targets": [r"re:.*mlp\.down_proj"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
        },
        "b": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}},
    }  # fmt: skip
    table = {
        "quant_method": "compressed-tensors",
        "config_groups": groups,
        "ignore": ["lm_head", "model.layers.0.self_attn", "re:.*layers.31.mlp.*"],
    }
    spec = read_config(shipped_config("llama-3.1-8b") | {"quantization_config": table}).spec
    formats = {(each.part, each.matrix, each.format, each.layers) for each in spec.stored}
    assert ("attention", "q", WeightFormat.BF16, frozenset({1})) in formats
    assert ("dense", "gate", WeightFormat.BF16, frozenset({32})) in formats
    assert any(each[:3] == ("dense", "down", WeightFormat.FP8_CHANNEL) for each in formats)
    assert spec.dense_weights == spec.attention_weights == "nvfp4"


# what a layer keeps


def test_deepseek_v32_with_fp8_kv_keeps_pages_of_656_and_132_bytes() -> None:
    spec = model_preset("deepseek-v3.2")
    kind = spec.kind_of(1)
    assert kv_bytes_of_layer(kind, Dtype.FP8) == 656
    assert kv_bytes_per_token(spec, Dtype.FP8) == 61 * (656 + 132) == 48_068
    assert anatomy(spec, (), Dtype.FP8).kv_bytes_per_token == 48_068


def test_a_window_layer_of_gpt_oss_holds_128_positions() -> None:
    spec = model_preset("gpt-oss-120b")
    one = 2 * 8 * 64 * 2
    assert sequence_bytes(spec, 16_384, Dtype.BF16) == 18 * one * (128 + 16_384)
    scenario = load_scenario("gpt-oss-120b-dep4")
    share = kv_share(scenario, 0, 16_384)
    assert share.bytes == 18 * one * (128 + 16_384)
    early, late = kv_owners(scenario, 1_000).holdings[0], kv_owners(scenario, 16_383).holdings[0]
    assert (early.sizes or ())[0] == (2, one)
    assert [len(each.sizes or ()) for each in (early, late)] == [18, 36]


def test_states_of_linear_layers_by_hand() -> None:
    """Qwen3.5: 45 layers of 64 x 128 x 128 in FP32 and three inputs of 12,288 channels in BF16."""
    spec = model_preset("qwen3.5-397b-a17b")
    assert state_bytes_per_sequence(spec) == 45 * (64 * 128 * 128 * 4 + 3 * 12_288 * 2)
    assert kv_bytes_per_token(spec, Dtype.BF16) == 15 * 2 * 2 * 256 * 2
    nano = model_preset("nemotron-3-nano-30b-a3b")
    assert state_bytes_per_sequence(nano) == 23 * (64 * 64 * 128 * 4 + 3 * 6_144 * 2)
    halves = state_bytes_per_sequence(spec, Dtype.BF16, 2)
    assert 2 * halves == state_bytes_per_sequence(spec)


def test_layers_that_share_kv_hold_none() -> None:
    config = shipped_config("gemma-4-26b-a4b")
    text = config["text_config"]
    assert isinstance(text, dict)
    whole = read_config(config).spec
    text["num_kv_shared_layers"] = 10
    shared = read_config(config).spec
    assert sum(kind.kv_values == 0 for kind in shared.layer_kinds) == 10
    assert sequence_bytes(shared, 4_096, Dtype.BF16) < sequence_bytes(whole, 4_096, Dtype.BF16)


def deployment(preset: str, **mesh: int) -> Scenario:
    table = {
        "model": {"preset": preset},
        "mesh": mesh,
        "cluster": {"gpus_per_node": 8, "hardware": "h200"},
        "token": {"position": 100, "prompt": 4096},
    }
    return Scenario.from_dict(table)


@pytest.mark.parametrize(
    ("preset", "mesh"),
    [
        ("qwen3.5-397b-a17b", {"tp": 2, "dp": 8, "ep": 16}),
        ("nemotron-3-nano-30b-a3b", {"tp": 2, "dp": 4, "ep": 8}),
        ("gemma-4-31b-nvfp4", {"tp": 4, "pp": 2}),
        ("deepseek-v4-flash", {"dp": 8, "ep": 8}),
        ("gpt-oss-120b", {"tp": 4, "dp": 2, "ep": 8}),
        ("mimo-v2-flash", {"tp": 4, "dp": 4, "ep": 16}),
        ("glm-5-nvfp4", {"tp": 8, "pp": 2, "ep": 8}),
    ],
)
def test_what_the_gpus_hold_is_the_model_once(preset: str, mesh: dict[str, int]) -> None:
    """Each weight counted once, whoever holds it; and it fits or not without a crash."""
    scenario = deployment(preset, **mesh)
    total = 0.0
    for rank in range(scenario.mesh.world_size):
        for each in residency_of(scenario, rank).weights:
            total += each.parameters / each.held_by
    assert total == pytest.approx(count_parameters(scenario.model).total, rel=1e-12)
    assert check_fits(scenario).fullest.weight_bytes > 0


def test_a_trip_visits_the_parts_that_a_layer_has() -> None:
    scenario = deployment("nemotron-3-nano-30b-a3b", tp=2, cp=2, dp=2, ep=8)
    trip = take_trip(scenario)
    kinds = scenario.model.layer_kinds
    for layer in range(1, 53):
        found = {hop.kind for hop in trip.hops if hop.layer == layer}
        assert (HopKind.DISPATCH in found) == kinds[layer - 1].is_moe
        assert (HopKind.KV_EXCHANGE in found) == bool(kinds[layer - 1].kv_values)
        assert (HopKind.STATE_PASS in found) == (getattr(kinds[layer - 1].attention, "type", "") == "mamba2")


# reading


def test_configs_saved_again_by_transformers_5() -> None:
    moe = shipped_config("qwen3-235b-a22b")
    moe["num_local_experts"] = moe.pop("num_experts")
    moe["rope_parameters"] = {"rope_theta": moe.pop("rope_theta", 1e6), "rope_type": "default"}
    assert read_config(moe).spec.experts == 128
    sparse = shipped_config("deepseek-v3.2") | {"layer_types": ["indexed_attention"] * 61}
    assert count_parameters(read_config(sparse).spec).total == 671_877_929_216
    fresh = shipped_config("deepseek-v3")
    for key in ("scoring_func", "topk_method", "moe_layer_freq"):
        fresh.pop(key, None)
    read = read_config(fresh)
    assert read.spec.router == "sigmoid_bias_topk"
    assert "config.scoring_func is absent: takes the model class's default, 'sigmoid'" in read.warnings


def test_wrappers_are_opened_and_name_what_is_beside() -> None:
    text = shipped_config("qwen3-235b-a22b")
    for key in ("text_config", "llm_config", "language_config"):
        wrapped = {"model_type": "some_vl", key: dict(text), "vision_config": {"hidden_size": 8}}
        read = read_config(wrapped)
        assert read.spec.experts == 128
        assert "no count includes the vision encoder" in read.warnings
    thinker = {
        "thinker_config": {"text_config": dict(text), "audio_config": {"d": 1}},
        "talker_config": {"d": 1},
    }
    read = read_config({"model_type": "qwen_omni"} | thinker)
    assert read.spec.left_out == ("the talker", "the audio encoder")


def test_a_family_that_is_not_known_is_read_by_its_keys_and_says_what_it_assumes() -> None:
    config = changed("deepseek_v3", model_type="deepseek_v9", architectures=None)
    read = read_config(config)
    assert count_parameters(read.spec).total == 671_026_404_352
    assert any("'deepseek_v9' is not known; assumed: " in text for text in read.warnings)
    by_name = read_config(changed("llama", model_type="my_llama"))
    assert any("read as llama, which its architecture names" in text for text in by_name.warnings)


def test_step3_has_queries_through_a_low_rank() -> None:
    """stepfun-ai/step3, text_config: 61 layers, 56 with 48 experts; 316B in the language model."""
    text: dict[str, object] = {
        "model_type": "step3_text", "hidden_size": 7168, "intermediate_size": 18432, "head_dim": 256,
        "num_attention_heads": 64, "num_attention_groups": 1, "num_hidden_layers": 61,
        "vocab_size": 128815, "moe_intermediate_size": 5120, "moe_num_experts": 48, "moe_top_k": 3,
        "share_expert_dim": 5120, "share_q_dim": 2048,
        "moe_layers_enum": ",".join(map(str, range(4, 60))), "torch_dtype": "bfloat16",
    }  # fmt: skip
    count = count_parameters(read_config({"model_type": "step3_vl", "text_config": text}).spec)
    assert round(count.total / 1e9) == 316
    assert 38e9 < count.active < 39e9


def test_identity_experts_of_longcat_have_no_weights() -> None:
    """560B as published; the class of transformers 5.24.0 allocates gate and up for 256 identity experts."""
    config = {
        "model_type": "longcat_flash", "vocab_size": 131072, "hidden_size": 6144, "num_layers": 28,
        "num_attention_heads": 64, "ffn_hidden_size": 12288, "q_lora_rank": 1536, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_topk": 12,
        "n_routed_experts": 512, "zero_expert_num": 256, "expert_ffn_hidden_size": 2048,
    }  # fmt: skip
    total = count_parameters(read_config(config).spec).total
    assert total + 28 * 256 * 2 * 2048 * 6144 == 741_053_585_408
    assert round(total / 1e9) == 561


@pytest.mark.parametrize("model_type", ["vaultgemma", "jetmoe", "hrm_text", "moshi", "flint"])
def test_families_with_parts_that_no_key_states_are_refused(model_type: str) -> None:
    with pytest.raises(ConfigError, match=rf"config.model_type='{model_type}' is not read: its layers have"):
        read_config(changed("llama", model_type=model_type, architectures=None))


def test_mistral_is_no_mixtral() -> None:
    config = changed("llama", model_type="mistral", architectures=["MistralForCausalLM"], sliding_window=None)
    spec = read_config(config).spec
    assert (spec.experts, spec.layer_kinds) == (None, ())


def test_a_part_that_cannot_be_known_is_refused() -> None:
    config = changed("llama", model_type="new", architectures=None, mamba_d_state=16)
    with pytest.raises(
        ConfigError, match=r"config.model_type='new' is not a family .* 'mamba_d_state' names"
    ):
        read_config(config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"num_hidden_layers": 10**6},
            "config.num_hidden_layers=1000000 must be a whole number from 1 to 4096",
        ),
        ({"hidden_size": -1}, "config.hidden_size=-1 must be a whole number"),
        ({"intermediate_size": float("nan")}, "config.intermediate_size=nan must be a whole number"),
        ({"vocab_size": 10**12}, r"config.vocab_size=\d+ must be a whole number"),
    ],
)
def test_sizes_that_no_model_has(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_config(changed("llama", **change))


def test_bombs_are_refused(tmp_path: Path) -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ConfigError, match="is nested deeper than"):
        read_config(changed("llama", rope_scaling=deep))
    wrapped: dict[str, object] = shipped_config("llama-3.1-8b")
    for _ in range(8):
        wrapped = {"model_type": "llama", "text_config": wrapped}
    with pytest.raises(ConfigError, match="is nested deeper than"):
        read_config(wrapped)
    big = tmp_path / "config.json"
    big.write_bytes(b" " * (9 << 20))
    with pytest.raises(ConfigError, match=r"model.config=.* has 9,437,184 bytes; a config has at most"):
        read_config_file(big)
    big.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ConfigError, match="is not a JSON file"):
        read_config_file(big)


def test_a_kind_that_is_malformed_names_its_key() -> None:
    table = {"layers": 2, "hidden": 8, "heads": 2, "vocab": 9}
    kind = {"layers": "1-2", "attention": {"type": "sliding", "heads": 2, "kv_heads": 2, "head_dim": 4}}
    with pytest.raises(
        ConfigError, match=r"model.layer_kinds.attention.v_head_dim is not given and is needed here"
    ):
        ModelSpec.from_dict(table | {"layer_kinds": [kind]})
    with pytest.raises(ConfigError, match=r"model.layer_kinds.layers says nothing of layer 2"):
        ModelSpec.from_dict(table | {"layer_kinds": [{"layers": "1"}]})
    with pytest.raises(ConfigError, match=r"model.layer_kinds.layers='1-9' must name|from 1 to 2"):
        ModelSpec.from_dict(table | {"layer_kinds": [{"layers": "1-9"}]})
    linear = LinearAttention(
        type="kda", key_heads=2, value_heads=2, key_dim=4, value_dim=4, conv=4  # type: ignore[arg-type]
    )  # fmt: skip
    mixed = (LayerKind(attention=linear), LayerKind(attention=Mamba2(heads=2, head_dim=4, state=8, groups=1)))
    spec = ModelSpec(layers=2, hidden=8, heads=2, vocab=9, layer_kinds=mixed)
    assert ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


# the command


@pytest.mark.parametrize("name", ["deepseek-v3", "qwen3.5-397b-a17b", "nemotron-3-nano-30b-a3b", "kimi-k3"])
def test_the_command_prints_a_report_that_follows_its_schema(name: str) -> None:
    done = CliRunner().invoke(tokentrip, ["model", name, "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    check("model", report)
    assert report["parameters"]["total"] == sum(report["parameters"]["by_part"].values())
    assert report["weight_bytes"] == sum(report["weight_bytes_by_format"].values())
    text = CliRunner().invoke(tokentrip, ["model", name]).stdout
    assert f"{report['parameters']['total']:,}" in text

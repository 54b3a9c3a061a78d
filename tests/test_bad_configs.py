"""Configs that no model has: each is refused with the field at fault, in under a second."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from tracer.errors import ConfigError
from tracer.model.configs import read_config, read_config_file

MODEL = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1000, "torch_dtype": "bfloat16",
}  # fmt: skip
MOE = MODEL | {
    "model_type": "qwen3_moe", "head_dim": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 128,
    "norm_topk_prob": True,
}  # fmt: skip
LFM2 = MODEL | {"model_type": "lfm2"}
NAN, INF = float("nan"), float("inf")


def nested(make: Callable[[Any], Any]) -> Any:
    value: Any = {}
    for _ in range(50_000):
        value = make(value)
    return value


def patterns(*names: str) -> dict[str, Any]:
    return {"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": list(names)}}


def regexes(*targets: str) -> dict[str, Any]:
    group = {"targets": list(targets), "weights": {"num_bits": 8, "type": "float"}}
    table = {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": []}
    return {"quantization_config": table}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (MODEL | {"num_hidden_layers": 10**6}, "config.num_hidden_layers"),
        (MODEL | {"num_hidden_layers": -1}, "config.num_hidden_layers"),
        (MODEL | {"num_hidden_layers": NAN}, "config.num_hidden_layers"),
        (MODEL | {"hidden_size": -4}, "config.hidden_size"),
        (MODEL | {"hidden_size": INF}, "config.hidden_size"),
        (MODEL | {"hidden_size": 10**30}, "config.hidden_size"),
        (MODEL | {"hidden_size": "1024"}, "config.hidden_size"),
        (MODEL | {"num_attention_heads": True}, "config.num_attention_heads"),
        (MODEL | {"layer_types": ["full_attention"] * 10**5}, "config.layer_types"),
        (MOE | {"num_experts": 10**9}, "config.num_experts"),
        (MODEL | {"model_type": "lfm2", "block_ffn_dim_multiplier": NAN}, "config.block_ffn_dim_multiplier"),
        (
            MODEL | {"model_type": "lfm2", "block_ffn_dim_multiplier": 1e300},
            "config.block_ffn_dim_multiplier",
        ),
        (
            MODEL | {"model_type": "bamba", "attn_layer_indices": list(range(10**5))},
            "config.attn_layer_indices",
        ),
        (nested(lambda value: {"text_config": value}), "config"),
        (MODEL | {"extra": nested(lambda value: [value])}, "config"),
        (MODEL | patterns("x" * 10**6), "config.quantization_config"),
        (MODEL | patterns(*(f"model.layers.{n}.mlp" for n in range(10**5))), "config.quantization_config"),
        (MODEL | regexes("re:(a+)+$"), "config.quantization_config.config_groups.group_0"),
        (
            MODEL | {"num_hidden_layers": 4096} | regexes(*(f"re:.*a.*b.*c.*{n}" for n in range(30))),
            "config.quantization_config",
        ),
        ([], "config"),
        (None, "config"),
    ],
    ids=lambda value: "",
)
def test_refused_at_once(config: Any, field: str) -> None:
    start = perf_counter()
    with pytest.raises(ConfigError, match=field) as caught:
        read_config(config)
    assert caught.value.field == field
    assert perf_counter() - start < 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"x": "' + "a" * 50_000_000 + '"}', "a config has at most 8,388,608"),
        ("[" * 100_000, "is not a JSON file"),
        ('{"layers": ' + "9" * 100_000 + "}", "is not a JSON file"),
    ],
    ids=["50 MB", "brackets", "digits"],
)
def test_files_are_refused_at_once(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    start = perf_counter()
    with pytest.raises(ConfigError, match=said):
        read_config_file(path)
    assert perf_counter() - start < 1


def test_the_largest_models_are_read_in_a_second(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MODEL | {"num_hidden_layers": 4096}), encoding="utf-8")
    start = perf_counter()
    assert read_config_file(path).spec.layers == 4096
    assert perf_counter() - start < 2

"""Bits per weight that a quantisation_config means, by a hand count on a small model."""

from __future__ import annotations

from typing import Any

import pytest

from tracer.errors import ConfigError
from tracer.model.configs import read_config
from tracer.model.parameters import count_parameters

MODEL = {
    "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1000, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}  # fmt: skip
ATTENTION, FFN = 2 * 1024 * 1024 + 2 * 512 * 1024, 3 * 2048 * 1024
LINEAR = 4 * (ATTENTION + FFN)
REST = 2 * 1000 * 1024 + 9 * 1024
"""Elements of the linear layers, and of embedding, head and norms, which stay in BF16."""


def bits(quantised: dict[str, Any] | None, beside: object = None) -> float:
    """Bits per weight of the linear layers, scales included."""
    config = MODEL | ({"quantization_config": quantised} if quantised else {})
    count = count_parameters(read_config(config, quantisation=beside).spec)
    return (count.weight_bytes - 2 * REST) / LINEAR * 8


def group(kind: str, width: int, targets: list[str], **more: Any) -> dict[str, Any]:
    return {"targets": targets, "weights": {"num_bits": width, "type": kind, "strategy": "tensor"} | more}


def compressed(ignore: list[str], *groups: dict[str, Any]) -> dict[str, Any]:
    named = {f"group_{number}": each for number, each in enumerate(groups)}
    return {"quant_method": "compressed-tensors", "config_groups": named, "ignore": ignore}


ATTENTION_SHARE = ATTENTION / (ATTENTION + FFN)
DOWN_SHARE = 2048 * 1024 / (ATTENTION + FFN)
ROWS = 2 * 1024 + 2 * 512 + 2 * 2048 + 1024
"""Rows of a layer's matrices: each has an FP32 scale where scales go by channel."""
Q_SHARE = 1024 * 1024 / (ATTENTION + FFN)
ASYMMETRIC = 4 + 20 / 128
NVFP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}


@pytest.mark.parametrize(
    ("quantised", "expected"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, ASYMMETRIC),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": ["down_proj"]},
            ASYMMETRIC * (1 - DOWN_SHARE) + 16 * DOWN_SHARE,
        ),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, 8 + 24 / 32),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 128,
             "modules_in_block_to_quantize": [["self_attn.q_proj"]]},
            ASYMMETRIC * Q_SHARE + 16 * (1 - Q_SHARE),
        ),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}, ASYMMETRIC),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4.5),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8 + 32 * ROWS / (ATTENTION + FFN)),
        ({"quant_method": "fbgemm_fp8"}, 8 + 32 * ROWS / (ATTENTION + FFN)),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + 32 / 128**2),
        ({"quant_method": "fp8", "activation_scheme": "static"}, 8),
        ({"quant_method": "mxfp8"}, 8.25),
        (compressed(["lm_head"], group("int", 8, ["Linear"], strategy="channel")),
         8 + 32 * ROWS / (ATTENTION + FFN)),
        (compressed(["lm_head"], group("int", 4, ["Linear"], strategy="group", group_size=32)), 4.5),
        (compressed(["lm_head"], group("int", 8, ["Linear"], strategy="group", group_size=64)), 8.25),
        (
            compressed(
                ["lm_head", "re:.*layers.0.*"], group("float", 8, ["re:.*self_attn.*"]),
                {"targets": ["re:.*mlp.*"], "weights": NVFP4},
            ),
            0.25 * 16 + 0.75 * (8 * ATTENTION_SHARE + 4.5 * (1 - ATTENTION_SHARE)),
        ),
        (
            {"quant_method": "quark", "exclude": ["lm_head"],
             "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32}},
             "layer_quant_config": {"*self_attn*": {"weight": {"dtype": "fp8_e4m3"}}}},
            8 * ATTENTION_SHARE + 4.25 * (1 - ATTENTION_SHARE),
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head", "model.layers.0.*"]},
         0.25 * 16 + 0.75 * 4.5),
    ],
    ids=lambda value: str(value.get("quant_method")) if isinstance(value, dict) else "",
)  # fmt: skip
def test_bits_per_weight(quantised: dict[str, Any], expected: float) -> None:
    assert bits(quantised) == pytest.approx(expected, rel=1e-6)


def test_modelopts_file_beside_the_config() -> None:
    file = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]},
    }
    assert bits(None, file) == 8
    assert bits(None) == 16


@pytest.mark.parametrize("method", ["hqq", "torchao", "gptq"])
def test_a_format_that_is_not_counted_is_refused(method: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.quantization_config\.(quant_method|bits)="):
        bits({"quant_method": method, "bits": 3, "group_size": 128})

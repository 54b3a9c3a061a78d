"""How many bytes one piece of the token has: elements times the declared dtype."""

from __future__ import annotations

from typing import Any

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
DEFAULTS = {
    "activations": "bf16",
    "kv": "bf16",
    "dispatch": "bf16",
    "combine": "bf16",
    "logits": "fp32",
    "weights": "bf16",
    "tp_gather": "bf16",
}


def _size(scenario: dict[str, Any], what: str) -> int:
    return BYTES[scenario.get("dtype", {}).get(what) or DEFAULTS[what]]


def _model(scenario: dict[str, Any], key: str) -> int:
    return int(scenario["model"].get(key, 0))


def row(scenario: dict[str, Any]) -> int:
    """The token's hidden row, or a partial sum of it."""
    return _model(scenario, "hidden") * _size(scenario, "activations")


def probability(scenario: dict[str, Any]) -> int:
    """A gate's weight of one expert, beside a dispatched row."""
    return _size(scenario, "activations")


def gathered_row(scenario: dict[str, Any]) -> int:
    """The row as TP gathers it: with SP before a split matmul, perhaps in a dtype of its own."""
    with_sp = scenario.get("mesh", {}).get("sp", "megatron") == "megatron"
    if with_sp and scenario.get("dtype", {}).get("tp_gather"):
        return _model(scenario, "hidden") * _size(scenario, "tp_gather")
    return row(scenario)


def kv_of_one_rank(scenario: dict[str, Any], tp: int) -> int:
    """K and V of one token and layer on one TP rank."""
    if _model(scenario, "kv_lora_rank"):
        elements = _model(scenario, "kv_lora_rank") + _model(scenario, "qk_rope_head_dim")
    else:
        key_size = _model(scenario, "head_dim")
        value_size = _model(scenario, "v_head_dim") or key_size
        elements = max(1, _model(scenario, "kv_heads") // tp) * (key_size + value_size)
    return elements * _size(scenario, "kv")


def query_of_one_rank(scenario: dict[str, Any], tp: int) -> int:
    """The query heads of one token on one TP rank; with MLA each is as wide as the cached latent."""
    width = _model(scenario, "head_dim")
    if _model(scenario, "kv_lora_rank"):
        width = _model(scenario, "kv_lora_rank") + _model(scenario, "qk_rope_head_dim")
    return _model(scenario, "heads") // tp * width * _size(scenario, "activations")


def partial_of_one_rank(scenario: dict[str, Any], tp: int) -> int:
    """Partial outputs of those heads, and for each head two FP32 numbers: the maximum and the sum."""
    width = _model(scenario, "v_head_dim") or _model(scenario, "head_dim")
    if _model(scenario, "kv_lora_rank"):
        width = _model(scenario, "kv_lora_rank")
    heads = _model(scenario, "heads") // tp
    return heads * width * _size(scenario, "activations") + heads * 2 * 4


def dispatched_row(scenario: dict[str, Any], low_latency: bool) -> int:
    """A row on its way to an expert: FP8 carries a scale for each 128, low latency 16 bytes more."""
    hidden = _model(scenario, "hidden")
    if scenario.get("dtype", {}).get("dispatch", "bf16") != "fp8":
        return hidden * _size(scenario, "dispatch")
    scales = len(range(0, hidden, 128))
    return hidden + 4 * scales + (16 if low_latency else 0)


def combined_row(scenario: dict[str, Any]) -> int:
    """An expert's weighted output on its way back."""
    return _model(scenario, "hidden") * _size(scenario, "combine")


def logits_of_one_rank(scenario: dict[str, Any], tp: int) -> int:
    """One TP rank's part of the logits, the vocabulary padded to tp."""
    vocabulary = _model(scenario, "vocab")
    while vocabulary % tp:
        vocabulary += 1
    return vocabulary // tp * _size(scenario, "logits")


def expert_slice(scenario: dict[str, Any], etp: int) -> int:
    """What one etp rank has of an expert's gate, up and down projections."""
    assert _model(scenario, "expert_hidden") % etp == 0
    return (
        3
        * _model(scenario, "hidden")
        * (_model(scenario, "expert_hidden") // etp)
        * _size(scenario, "weights")
    )

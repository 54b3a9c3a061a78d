"""How many bytes one piece of the token has: elements times the declared dtype."""

from __future__ import annotations

from typing import Any

from oracle import kinds
from oracle.kinds import attention_of, expert_row

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


def row(scenario: dict[str, Any], experts: bool = False) -> int:
    """The token's hidden row, or a partial sum of it; as experts take it."""
    elements = expert_row(scenario) if experts else _model(scenario, "hidden")
    return elements * _size(scenario, "activations")


def probability(scenario: dict[str, Any]) -> int:
    """A gate's weight of one expert, beside a dispatched row."""
    return _size(scenario, "activations")


def gathered_row(scenario: dict[str, Any], experts: bool = False) -> int:
    """The row as TP gathers it: with SP before a split matmul, perhaps in a dtype of its own."""
    with_sp = scenario.get("mesh", {}).get("sp", "megatron") == "megatron"
    if with_sp and scenario.get("dtype", {}).get("tp_gather"):
        elements = expert_row(scenario) if experts else _model(scenario, "hidden")
        return elements * _size(scenario, "tp_gather")
    return row(scenario, experts and with_sp)


def kv_of_one_rank(scenario: dict[str, Any], tp: int, layer: int) -> int:
    """K and V of one token and layer on one TP rank."""
    table = attention_of(scenario, layer) or {}
    if table.get("kv_lora_rank"):
        elements = table["kv_lora_rank"] + table["qk_rope_head_dim"]
    else:
        value_size = table.get("v_head_dim") or table["head_dim"]
        elements = max(1, table["kv_heads"] // tp) * (table["head_dim"] + value_size)
    return int(elements * _size(scenario, "kv"))


def query_of_one_rank(scenario: dict[str, Any], tp: int, layer: int) -> int:
    """The query heads of one token on one TP rank; with MLA each is as wide as the cached latent."""
    table = attention_of(scenario, layer) or {}
    width = table.get("head_dim")
    if table.get("kv_lora_rank"):
        width = table["kv_lora_rank"] + table["qk_rope_head_dim"]
    return int(table["heads"] // tp * width * _size(scenario, "activations"))


def partial_of_one_rank(scenario: dict[str, Any], tp: int, layer: int) -> int:
    """Partial outputs of those heads, and for each head two FP32 numbers: the maximum and the sum."""
    table = attention_of(scenario, layer) or {}
    width = table.get("kv_lora_rank") or table.get("v_head_dim") or table["head_dim"]
    heads = table["heads"] // tp
    return int(heads * width * _size(scenario, "activations") + heads * 2 * 4)


def state_of_one_rank(scenario: dict[str, Any], tp: int, layer: int) -> int:
    """The state of a layer on one TP rank."""
    return kinds.state_of_one_rank(attention_of(scenario, layer) or {}, tp, _size(scenario, "activations"))


def dispatched_row(scenario: dict[str, Any], low_latency: bool) -> int:
    """A row on its way to an expert: FP8 carries a scale for each 128, low latency 16 bytes more."""
    hidden = expert_row(scenario)
    if scenario.get("dtype", {}).get("dispatch", "bf16") != "fp8":
        return hidden * _size(scenario, "dispatch")
    scales = len(range(0, hidden, 128))
    return hidden + 4 * scales + (16 if low_latency else 0)


def combined_row(scenario: dict[str, Any]) -> int:
    """An expert's weighted output on its way back."""
    return expert_row(scenario) * _size(scenario, "combine")


def logits_of_one_rank(scenario: dict[str, Any], tp: int) -> int:
    """One TP rank's part of the logits, the vocabulary padded to tp."""
    vocabulary = _model(scenario, "vocab")
    while vocabulary % tp:
        vocabulary += 1
    return vocabulary // tp * _size(scenario, "logits")


def expert_slice(scenario: dict[str, Any], etp: int) -> int:
    """What one etp rank has of an expert's gate, up and down projections."""
    assert _model(scenario, "expert_hidden") % etp == 0
    return 3 * expert_row(scenario) * (_model(scenario, "expert_hidden") // etp) * _size(scenario, "weights")

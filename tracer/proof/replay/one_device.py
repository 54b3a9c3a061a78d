"""The same model on one device, written straight from the formulas: what the mesh must equal.

Nothing here is shared with the code that runs on the mesh: attention is one softmax over all keys,
rotary embedding a multiplication of complex numbers, routing a loop over tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.model.router_kind import RouterKind

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.proof.replay.checkpoint import Checkpoint
    from tracer.proof.replay.layer.maths import FloatArray, IntArray

WHY = "run the model"
Given = Mapping[tuple[int, int], tuple[int, ...]]
"""Experts given for (layer, position), whatever the router would pick."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """What one prompt leaves behind on one device; arrays are float64.

    ``embedded`` ``[tokens, hidden]``; by layer, residual rows ``after_attention`` and ``after_ffn``
    ``[tokens, hidden]`` and ``gates`` ``[tokens, experts]`` (0 where an expert was not picked);
    ``logits`` ``[tokens, vocab]``.
    """

    embedded: FloatArray
    after_attention: dict[int, FloatArray]
    gates: dict[int, FloatArray]
    after_ffn: dict[int, FloatArray]
    logits: FloatArray


def run_one_device(model: ModelSpec, weights: Checkpoint, words: IntArray, given: Given) -> Outputs:
    """A forward pass over one prompt, ``words`` ``[tokens]`` int64."""
    rows = weights["embed"][words]
    embedded, after_attention, gates, after_ffn = rows, {}, {}, {}
    for layer in range(1, model.layers + 1):
        named = {
            name.split(".", 1)[1]: value for name, value in weights.items() if name.startswith(f"{layer}.")
        }
        rows = rows + _attention(model, named, _norm(rows, named["norm1"]))
        after_attention[layer] = rows
        normed = _norm(rows, named["norm2"])
        if model.is_moe(layer):
            gates[layer] = _gates(model, named, normed, layer, given)
            rows = rows + _experts(model, named, normed, gates[layer]) + _shared(model, named, normed)
        else:
            rows = rows + _block(normed, named["dense.gate"], named["dense.up"], named["dense.down"])
        after_ffn[layer] = rows
    logits = _norm(rows, weights["norm"]) @ weights["head"].T
    return Outputs(embedded, after_attention, gates, after_ffn, logits)


def _norm(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """``x / sqrt(mean(x²) + 1e-6) · weight``."""
    result: FloatArray = rows * (np.square(rows).mean(-1, keepdims=True) + 1e-6) ** -0.5 * weight
    return result


def _block(rows: FloatArray, gate: FloatArray, up: FloatArray, down: FloatArray) -> FloatArray:
    """``(silu(x·gate) * (x·up))·down``."""
    gated = rows @ gate
    result: FloatArray = (gated / (1 + np.exp(-gated)) * (rows @ up)) @ down
    return result


def _rotate(heads: FloatArray) -> FloatArray:
    """Rotary embedding of ``[tokens, heads, width]``: pair (i, i + width/2) turned by t·10000^(-2i/width)."""
    tokens, _, width = heads.shape
    pairs = heads[..., : width // 2] + 1j * heads[..., width // 2 :]
    turns = np.outer(np.arange(tokens), 10_000.0 ** (-2 * np.arange(width // 2) / width))
    turned = pairs * np.exp(1j * turns)[:, None, :]
    return np.concatenate((turned.real, turned.imag), axis=-1)


def _attention(model: ModelSpec, weights: Checkpoint, rows: FloatArray) -> FloatArray:
    """Causal softmax attention over the whole prompt, and the output projection."""
    queries, keys, values = (_latent if model.mla else _grouped)(model, weights, rows)
    tokens, heads, width = queries.shape
    seen = np.tril(np.ones((tokens, tokens), dtype=bool))
    outputs = []
    for head in range(heads):
        kv_head = head // (heads // keys.shape[1])
        scores = np.where(seen, queries[:, head] @ keys[:, kv_head].T / width**0.5, -np.inf)
        raised = np.exp(scores - scores.max(-1, keepdims=True))
        outputs.append(raised / raised.sum(-1, keepdims=True) @ values[:, kv_head])
    result: FloatArray = np.concatenate(outputs, axis=1) @ weights["o"]
    return result


def _grouped(
    model: ModelSpec, weights: Checkpoint, rows: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Queries, keys and values ``[tokens, heads, width]`` of grouped-query attention."""
    tokens, kv_heads = len(rows), model.need("kv_heads", WHY)
    queries = (rows @ weights["q"]).reshape(tokens, model.need("heads", WHY), -1)
    keys = (rows @ weights["k"]).reshape(tokens, kv_heads, -1)
    return _rotate(queries), _rotate(keys), (rows @ weights["v"]).reshape(tokens, kv_heads, -1)


def _latent(
    model: ModelSpec, weights: Checkpoint, rows: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Queries, keys and values of multi-head latent attention (DeepSeek-V2 report, section 2.1)."""
    tokens, heads, rank = len(rows), model.need("heads", WHY), model.need("kv_lora_rank", WHY)
    nope = model.need("qk_nope_head_dim", WHY)
    low = _norm(rows @ weights["q_down"], weights["q_norm"]) if "q_down" in weights else rows
    queries = (low @ weights["q"]).reshape(tokens, heads, -1)
    latent, rotary = np.split(rows @ weights["kv_down"], [rank], axis=1)
    latent = _norm(latent, weights["kv_norm"])
    plain_keys = (latent @ weights["k_up"]).reshape(tokens, heads, -1)
    rotary_keys = np.repeat(_rotate(rotary[:, None, :]), heads, axis=1)
    turned = np.concatenate((queries[..., :nope], _rotate(queries[..., nope:])), axis=-1)
    keys = np.concatenate((plain_keys, rotary_keys), axis=-1)
    return turned, keys, (latent @ weights["v_up"]).reshape(tokens, heads, -1)


def _gates(model: ModelSpec, weights: Checkpoint, rows: FloatArray, layer: int, given: Given) -> FloatArray:
    """Weight of every expert for every token, one token at a time."""
    found = np.zeros((len(rows), weights["router"].shape[1]))
    for token, logits in enumerate(rows @ weights["router"]):
        picks = given.get((layer, token)) or _picks(model, logits, weights.get("router_bias"))
        found[token, list(picks)] = _pick_weights(model, logits, list(picks))
    return found


def _scores(model: ModelSpec, logits: FloatArray) -> FloatArray:
    result: FloatArray = logits
    if model.router is RouterKind.SIGMOID_BIAS_TOPK:
        result = 1 / (1 + np.exp(-logits))
    elif model.router in (None, RouterKind.SOFTMAX_TOPK):
        result = np.exp(logits) / np.exp(logits).sum()
    return result


def _picks(model: ModelSpec, logits: FloatArray, bias: FloatArray | None) -> list[int]:
    """The top k experts of the best groups, by score plus bias."""
    ranked = _scores(model, logits) + (0 if bias is None else bias)
    groups = np.array_split(np.arange(len(ranked)), model.expert_groups or 1)
    best = 1 if bias is None else 2
    by_score = sorted(groups, key=lambda group: -sum(sorted(ranked[group], reverse=True)[:best]))
    allowed = [int(expert) for group in by_score[: model.top_groups or 1] for expert in group]
    return sorted(allowed, key=lambda expert: -ranked[expert])[: model.top_k]


def _pick_weights(model: ModelSpec, logits: FloatArray, picks: list[int]) -> FloatArray:
    """Weights of one token's picks; the bias has no part in them."""
    picked: FloatArray = _scores(model, logits)[picks]
    if model.router is RouterKind.TOPK_SIGMOID:
        picked = 1 / (1 + np.exp(-picked))
        return picked
    if model.router is RouterKind.TOPK_SOFTMAX:
        picked = np.exp(picked) / np.exp(picked).sum()
        return picked
    if model.renormalise is not False:
        picked = picked / picked.sum()
    return picked * (1.0 if model.routed_scale is None else model.routed_scale)


def _experts(model: ModelSpec, weights: Checkpoint, rows: FloatArray, gates: FloatArray) -> FloatArray:
    """``Σ p_e · E_e(x)``; Llama-4 weighs the input instead: ``Σ E_e(p_e · x)``."""
    total = np.zeros_like(rows)
    for expert in np.flatnonzero(gates.any(axis=0)):
        weight = gates[:, expert : expert + 1]
        before, after = (weight, 1.0) if model.router is RouterKind.TOPK_SIGMOID else (1.0, weight)
        matrices = [weights[f"experts.{name}"][expert] for name in ("gate", "up", "down")]
        total += after * _block(before * rows, *matrices)
    return total


def _shared(model: ModelSpec, weights: Checkpoint, rows: FloatArray) -> FloatArray:
    """The shared expert, every token's; gated by a sigmoid where the model gates it."""
    if not model.shared_experts:
        return np.zeros_like(rows)
    out = _block(rows, weights["shared.gate"], weights["shared.up"], weights["shared.down"])
    if model.shared_gate:
        out = out / (1 + np.exp(-rows @ weights["shared_gate"]))
    return out

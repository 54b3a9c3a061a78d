"""Every weight matrix of a model: its shape, how many there are, and how many one token uses.

Counted: embedding, output head, attention, FFNs, routers, the gate of a gated shared expert, and the
RMSNorm vectors (two a layer, one at the end, and with MLA one for each latent).
Not counted: biases, q/k norms, attention sinks, multi-token-prediction layers, and ``spec.left_out``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tracer.model.spec import ModelSpec

_WHY = "count the parameters"


class WeightPart(StrEnum):
    """A part of the model that is counted, and may be stored, apart from the others."""

    EMBEDDING = "embedding"
    LM_HEAD = "lm_head"
    ATTENTION = "attention"
    DENSE = "dense"
    ROUTER = "router"
    SHARED = "shared"
    EXPERTS = "experts"
    NORMS = "norms"


@dataclass(frozen=True, slots=True)
class WeightMatrix:
    """``copies`` matrices of one shape ``[rows, columns]`` (output, input) in the whole model.

    ``used`` is how many of them one token passes through; only routed experts use fewer than there are.
    """

    part: WeightPart
    name: str
    rows: int
    columns: int
    copies: int
    used: int

    @property
    def elements(self) -> int:
        """Elements of one copy."""
        return self.rows * self.columns


def weight_matrices(spec: ModelSpec) -> tuple[WeightMatrix, ...]:
    """All matrices of the model, in the order a token meets them within a part.

    Raises:
        ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
    """
    return (*_ends(spec), *_attention(spec), *_dense_ffn(spec), *_experts(spec), *_norms(spec))


def ffn_matrices(part: WeightPart, hidden: int, width: int, copies: int, used: int) -> Iterator[WeightMatrix]:
    """The three matrices of a gated FFN (SwiGLU): ``[width, hidden]`` twice and ``[hidden, width]``."""
    yield WeightMatrix(part, "gate", width, hidden, copies, used)
    yield WeightMatrix(part, "up", width, hidden, copies, used)
    yield WeightMatrix(part, "down", hidden, width, copies, used)


def _ends(spec: ModelSpec) -> Iterator[WeightMatrix]:
    """Embedding and output head: one matrix where they are tied."""
    vocab, hidden = spec.need("vocab", _WHY), spec.need("hidden", _WHY)
    yield WeightMatrix(WeightPart.EMBEDDING, "embedding", vocab, hidden, 1, 1)
    if not spec.tie_embeddings:
        yield WeightMatrix(WeightPart.LM_HEAD, "lm_head", vocab, hidden, 1, 1)


def _attention(spec: ModelSpec) -> Iterator[WeightMatrix]:
    """The projections of every layer."""
    shapes = _latent_shapes(spec) if spec.mla else _grouped_query_shapes(spec)
    for name, (rows, columns) in shapes.items():
        yield WeightMatrix(WeightPart.ATTENTION, name, rows, columns, spec.layers, spec.layers)


def _grouped_query_shapes(spec: ModelSpec) -> dict[str, tuple[int, int]]:
    """q, k, v and o of grouped-query attention."""
    hidden, heads, kv_heads = (spec.need(size, _WHY) for size in ("hidden", "heads", "kv_heads"))
    head_dim, v_head_dim = spec.need("head_dim", _WHY), spec.need("v_head_dim", _WHY)
    return {
        "q": (heads * head_dim, hidden),
        "k": (kv_heads * head_dim, hidden),
        "v": (kv_heads * v_head_dim, hidden),
        "o": (hidden, heads * v_head_dim),
    }


def _latent_shapes(spec: ModelSpec) -> dict[str, tuple[int, int]]:
    """MLA: q in two steps through its latent (or in one), K/V through theirs, o."""
    hidden, heads = spec.need("hidden", _WHY), spec.need("heads", _WHY)
    latent, rope, v_dim = (
        spec.need(size, _WHY) for size in ("kv_lora_rank", "qk_rope_head_dim", "v_head_dim")
    )
    nope, q_rows = spec.need("qk_nope_head_dim", _WHY), heads * spec.qk_head_dim
    q_latent = spec.q_lora_rank
    q = {"q_a": (q_latent, hidden), "q_b": (q_rows, q_latent)} if q_latent else {"q": (q_rows, hidden)}
    return q | {
        "kv_a": (latent + rope, hidden),
        "kv_b": (heads * (nope + v_dim), latent),
        "o": (hidden, heads * v_dim),
    }


def _dense_ffn(spec: ModelSpec) -> Iterator[WeightMatrix]:
    """The FFN of every dense layer."""
    layers = spec.layers - spec.moe_layers
    if layers:
        hidden, width = spec.need("hidden", _WHY), spec.need("dense_hidden", _WHY)
        yield from ffn_matrices(WeightPart.DENSE, hidden, width, layers, layers)


def _experts(spec: ModelSpec) -> Iterator[WeightMatrix]:
    """Router (with the gate of a gated shared expert), shared and routed experts of every MoE layer."""
    layers = spec.moe_layers
    if not layers:
        return
    hidden, experts, top_k = (spec.need(size, _WHY) for size in ("hidden", "experts", "top_k"))
    yield WeightMatrix(WeightPart.ROUTER, "router", experts, hidden, layers, layers)
    if spec.shared_gate:
        yield WeightMatrix(WeightPart.ROUTER, "shared_gate", 1, hidden, layers, layers)
    if spec.shared_experts:
        yield from ffn_matrices(WeightPart.SHARED, hidden, spec.need("shared_hidden", _WHY), layers, layers)
    width = spec.need("expert_hidden", _WHY)
    yield from ffn_matrices(WeightPart.EXPERTS, hidden, width, layers * experts, layers * top_k)


def _norms(spec: ModelSpec) -> Iterator[WeightMatrix]:
    """RMSNorm vectors, as matrices of one row."""
    norms = 2 * spec.layers + 1
    yield WeightMatrix(WeightPart.NORMS, "norm", 1, spec.need("hidden", _WHY), norms, norms)
    for latent in (spec.q_lora_rank, spec.kv_lora_rank):
        if latent:
            yield WeightMatrix(WeightPart.NORMS, "latent_norm", 1, latent, spec.layers, spec.layers)

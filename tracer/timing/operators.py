"""The arithmetic of one layer on one GPU: FLOPs and bytes of each operator.

A multiply-add is two FLOPs. Bytes are those that must cross the memory port once: weights, and the rows
that go in and come out. Norms, rotary embedding, routing and softmax are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracer.errors import finite_number
from tracer.model.dtype import BYTES, Dtype
from tracer.model.layers import AttentionType
from tracer.model.parameters import expert_bytes, expert_parameters, part_format
from tracer.model.weight_format import WeightFormat, stored_bytes
from tracer.model.weights import WeightMatrix, WeightPart, ffn_matrices, layer_matrices
from tracer.scenario.token import Phase
from tracer.traffic.chance import HitChance

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.timing.batch import TimedBatch

_WHY = "count the FLOPs of a layer"
_RATES = {
    WeightFormat.FP8: "fp8_flops",
    WeightFormat.FP8_BLOCK128: "fp8_flops",
    WeightFormat.FP8_BLOCK128_UE8M0: "fp8_flops",
    WeightFormat.FP8_CHANNEL: "fp8_flops",
    WeightFormat.MXFP8: "fp8_flops",
    WeightFormat.NVFP4: "fp4_flops",
}


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: its FLOPs, the bytes of its weights and of its rows, and the rate it runs at.

    ``rate`` names a figure of the hardware: ``bf16_flops``, ``fp8_flops`` or ``fp4_flops``.
    """

    name: str
    flops: float
    weight_bytes: float
    row_bytes: float
    rate: str

    @property
    def bytes(self) -> float:
        """Bytes that cross the memory port."""
        return self.weight_bytes + self.row_bytes

    @property
    def intensity(self) -> float:
        """FLOPs per byte; 0 for an operator that does nothing."""
        return self.flops / self.bytes if self.bytes else 0.0


@dataclass(frozen=True, slots=True)
class ExpertLoad:
    """Experts a GPU computes with, those of them that get a token, and the (token, expert) pairs it runs."""

    experts: float
    hit: float
    pairs: float

    @property
    def tokens_per_expert(self) -> float:
        """Rows of one expert that gets any."""
        return self.pairs / self.hit if self.hit else 0.0


def rate_of(stored: WeightFormat) -> str:
    """The rate that a storage format multiplies at, activations in the same format.

    BF16 and wider, and MXFP4 (whose weights are widened, rows staying BF16), run at the BF16 rate.
    """
    return _RATES.get(stored, "bf16_flops")


def expert_load(
    spec: ModelSpec, tokens: float, share: float = 1.0, own_pairs: float | None = None
) -> ExpertLoad:
    """Load of a GPU that computes with ``share`` of the experts, for ``tokens`` tokens of all GPUs it serves.

    Uniform picks without repeats: a given expert misses one token with 1 - k/E, all of them with that to
    the power of ``tokens``. ``own_pairs`` overrides the even share of the tokens' picks.

    Raises:
        ConfigError: for a model without experts, or negative tokens.
    """
    experts, top_k = spec.need("experts", _WHY), HitChance.of_model(spec).mean_picks
    held = experts * share
    hit = held * (1 - (1 - top_k / experts) ** finite_number("tokens", tokens, zero=True))
    return ExpertLoad(held, hit, tokens * top_k * share if own_pairs is None else own_pairs)


def attention_operators(
    spec: ModelSpec,
    batch: TimedBatch,
    tp: int = 1,
    unstated: WeightFormat = WeightFormat.BF16,
    output: WeightFormat | None = None,
) -> tuple[Operator, ...]:
    """Projections of queries, keys and values, the core, and the output projection; heads cut over ``tp``.

    ``output`` is the storage of the output projection where a checkpoint stores it unlike the others.
    """
    stored = part_format(spec, WeightPart.ATTENTION, unstated)
    matrices = main_attention(spec)
    inner = [matrix for matrix in matrices if matrix.name != "o"]
    outer = [matrix for matrix in matrices if matrix.name == "o"]
    return (
        _projections("attention projections", spec, batch, tp, inner, stored),
        _core(spec, batch, tp),
        _projections("attention output", spec, batch, tp, outer, output or stored),
    )


def main_attention(spec: ModelSpec) -> list[WeightMatrix]:
    """The attention matrices of one layer of the model's main kind: one that sees all earlier tokens."""
    kinds = [kind for kind, _ in spec.kinds(_WHY) if kind.attention is not None]
    whole = (AttentionType.FULL, AttentionType.MLA, AttentionType.DSA)
    main = min(kinds, key=lambda kind: kind.attention is None or kind.attention.type not in whole)
    found = layer_matrices(replace(main, feed_forward=None), spec.need("hidden", _WHY))
    return [matrix for matrix in found if matrix.part is WeightPart.ATTENTION]


def _projections(
    name: str, spec: ModelSpec, batch: TimedBatch, tp: int, matrices: list[WeightMatrix], stored: WeightFormat
) -> Operator:
    flops = weights = 0.0
    for matrix in matrices:
        rows = batch.cached_tokens if _decompresses(spec, batch, matrix) else batch.tokens
        flops += 2 * matrix.elements * rows
        weights += stored_bytes(stored, matrix.rows, matrix.columns)
    row_bytes = batch.tokens * spec.need("hidden", _WHY) * BYTES[Dtype.BF16]
    return Operator(name, flops / tp, weights / tp, row_bytes, rate_of(stored))


def _decompresses(spec: ModelSpec, batch: TimedBatch, matrix: WeightMatrix) -> bool:
    """Whether a matrix runs over cached tokens too: MLA prefill rebuilds K and V from all latents."""
    return spec.mla and batch.phase is Phase.PREFILL and matrix.name == "kv_b"


def _core(spec: ModelSpec, batch: TimedBatch, tp: int) -> Operator:
    """Scores and weighted values, BF16, keys and values read once.

    MLA decode works in the latent space (keys kv_lora + rope wide, values kv_lora), prefill in the heads'.
    """
    heads = spec.need("heads", _WHY)
    key, value = spec.qk_head_dim, spec.need("v_head_dim", _WHY)
    cached = spec.kv_values_per_token / (1 if spec.mla else tp)
    if spec.mla and batch.phase is Phase.DECODE:
        latent = spec.need("kv_lora_rank", _WHY)
        key, value = latent + spec.need("qk_rope_head_dim", _WHY), latent
    flops = 2 * heads * batch.pairs * (key + value) / tp
    rows = batch.tokens * heads * (key + value) / tp + batch.cached_tokens * cached
    return Operator("attention core", flops, 0.0, rows * BYTES[Dtype.BF16], "bf16_flops")


def expert_operator(
    spec: ModelSpec, load: ExpertLoad, unstated: WeightFormat = WeightFormat.BF16
) -> Operator:
    """The grouped GEMMs of the routed experts: weights of each expert hit are read once."""
    stored = part_format(spec, WeightPart.EXPERTS, unstated)
    row_bytes = 2 * load.pairs * spec.expert_row * BYTES[Dtype.BF16]
    return Operator(
        "expert GEMMs",
        2 * expert_parameters(spec) * load.pairs,
        load.hit * expert_bytes(spec, unstated),
        row_bytes,
        rate_of(stored),
    )


def ffn_operator(
    spec: ModelSpec, part: WeightPart, tokens: float, tp: int = 1, unstated: WeightFormat = WeightFormat.BF16
) -> Operator:
    """The FFN of a dense layer (``WeightPart.DENSE``) or the shared experts (``SHARED``), cut over ``tp``."""
    width = spec.need("dense_hidden" if part is WeightPart.DENSE else "shared_hidden", _WHY)
    hidden, stored = spec.need("hidden", _WHY), part_format(spec, part, unstated)
    matrices = list(ffn_matrices(part, hidden, width, 1, 1, gated=is_gated(spec, part)))
    flops = sum(2 * matrix.elements * tokens for matrix in matrices)
    weights = sum(stored_bytes(stored, matrix.rows, matrix.columns) for matrix in matrices)
    name = "dense FFN" if part is WeightPart.DENSE else "shared expert"
    rows = 2 * tokens * hidden * BYTES[Dtype.BF16]
    return Operator(name, flops / tp, weights / tp, rows, rate_of(stored))


def is_gated(spec: ModelSpec, part: WeightPart) -> bool:
    """Whether the FFNs of a part are gated, in the first layer that has one."""
    for kind in spec.layer_kinds:
        if kind.feed_forward is not None and kind.is_moe == (part is WeightPart.SHARED):
            return kind.feed_forward.gated
    return spec.gated


def has_dense_ffn(spec: ModelSpec) -> bool:
    """Whether some layer without experts has an FFN: some kinds of layer have none."""
    return spec.moe_layers < spec.layers and not (spec.layer_kinds and spec.dense_hidden is None)


def moe_layer(
    spec: ModelSpec,
    batch: TimedBatch,
    load: ExpertLoad,
    *,
    tp: int = 1,
    shared_tp: int = 1,
    unstated: WeightFormat = WeightFormat.BF16,
    output: WeightFormat | None = None,
) -> tuple[Operator, ...]:
    """Operators of one MoE layer: attention, shared expert, routed experts.

    Raises:
        ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
    """
    attention = attention_operators(spec, batch, tp, unstated, output)
    shared = (
        (ffn_operator(spec, WeightPart.SHARED, batch.tokens, shared_tp, unstated),)
        if spec.shared_experts
        else ()
    )
    return (*attention, *shared, expert_operator(spec, load, unstated))


def dense_layer(
    spec: ModelSpec,
    batch: TimedBatch,
    *,
    tp: int = 1,
    dense_tp: int = 1,
    unstated: WeightFormat = WeightFormat.BF16,
    output: WeightFormat | None = None,
) -> tuple[Operator, ...]:
    """Operators of one dense layer: attention, and its FFN where it has one."""
    attention = attention_operators(spec, batch, tp, unstated, output)
    if spec.layer_kinds and not has_dense_ffn(spec):
        return attention
    return (*attention, ffn_operator(spec, WeightPart.DENSE, batch.tokens, dense_tp, unstated))

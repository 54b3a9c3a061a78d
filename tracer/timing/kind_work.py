"""The arithmetic of one layer of a kind on one GPU: its mixer, and its dense FFN where it has one.

Cores by kind, a multiply-add two FLOPs. Attention to K/V multiplies every query with the keys that it sees,
and as many weights with values: all before it, those of a window or a chunk, the best that an indexer picks
(which scores all), or a window and compressed entries. A state is decayed, written and read for each token:
6 FLOPs an element; decode reads and writes it once a request, prefill once a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracer.memory.kv_bytes import state_bytes_of_layer
from tracer.model.dtype import BYTES, Dtype
from tracer.model.layers import (
    AttentionType,
    CompressedAttention,
    DenseFfn,
    HeadAttention,
    LatentAttention,
    LinearAttention,
    Mamba2,
    MoeFfn,
)
from tracer.model.parameters import part_format
from tracer.model.weight_format import WeightFormat, stored_bytes
from tracer.model.weights import WeightMatrix, WeightPart, ffn_matrices, layer_matrices
from tracer.scenario.token import Phase
from tracer.timing.calibration.attention import causal_pairs
from tracer.timing.operators import Operator, rate_of

if TYPE_CHECKING:
    from tracer.model.layers import LayerKind
    from tracer.model.spec import ModelSpec
    from tracer.timing.batch import TimedBatch

_WHY = "count the FLOPs of a layer"
_MIXER_PARTS = (WeightPart.ATTENTION, WeightPart.INDEXER, WeightPart.LINEAR)
_OUTPUTS = ("o", "o_b")
_BF16 = BYTES[Dtype.BF16]


@dataclass(frozen=True, slots=True)
class KindWork:
    """Layers of one kind, and what a GPU computes in each: ``mixer`` (none without one) and ``dense``."""

    kind: LayerKind
    layers: tuple[int, ...]
    mixer: tuple[Operator, ...]
    dense: tuple[Operator, ...]


def mixer_name(kind: LayerKind) -> str:
    """What a kind's mixer is called in a table."""
    attention = kind.attention
    if attention is None:
        return "no mixer"
    word = str(attention.type).replace("_", " ")
    return word if isinstance(attention, LinearAttention | Mamba2) else f"{word} attention"


def mixer_projections(kind: LayerKind, hidden: int) -> tuple[list[WeightMatrix], list[WeightMatrix]]:
    """The matrices of a layer's mixer before its core, an indexer's among them, and those after it.

    Convolutions and tables are apart.
    """
    bare = replace(kind, feed_forward=None, extras=())
    skip = ("conv", "compress_positions")
    found = [
        each for each in layer_matrices(bare, hidden) if each.part in _MIXER_PARTS and each.name not in skip
    ]
    before = [each for each in found if each.name not in _OUTPUTS]
    return before, [each for each in found if each.name in _OUTPUTS]


def mixer_operators(
    spec: ModelSpec, kind: LayerKind, batch: TimedBatch, tp: int, unstated: WeightFormat
) -> tuple[Operator, ...]:
    """Projections, core and output projection of a layer's mixer, heads cut over ``tp``; () without one."""
    if kind.attention is None:
        return ()
    hidden, name = spec.need("hidden", _WHY), mixer_name(kind)
    inner, outer = mixer_projections(kind, hidden)
    return (
        _projections(f"{name} projections", spec, kind, batch, tp, inner, unstated),
        core_operator(kind, batch, tp, f"{name} core"),
        _projections(f"{name} output", spec, kind, batch, tp, outer, unstated),
    )


def _projections(
    name: str,
    spec: ModelSpec,
    kind: LayerKind,
    batch: TimedBatch,
    tp: int,
    matrices: list[WeightMatrix],
    unstated: WeightFormat,
) -> Operator:
    flops = weights = 0.0
    stored = part_format(spec, WeightPart.ATTENTION, unstated)
    rebuilds = isinstance(kind.attention, LatentAttention) and batch.phase is Phase.PREFILL
    for matrix in matrices:
        rows = batch.cached_tokens if rebuilds and matrix.name == "kv_b" else batch.tokens
        flops += 2 * matrix.elements * rows
        weights += stored_bytes(stored, matrix.rows, matrix.columns)
    row_bytes = batch.tokens * spec.need("hidden", _WHY) * _BF16
    return Operator(name, flops / tp, weights / tp, row_bytes, rate_of(stored))


def core_operator(kind: LayerKind, batch: TimedBatch, tp: int, name: str) -> Operator:
    """The core of a layer's mixer on one of ``tp`` ranks."""
    attention = kind.attention
    if isinstance(attention, LinearAttention | Mamba2):
        return _state_core(kind, attention, batch, tp, name)
    if isinstance(attention, LatentAttention):
        return _latent_core(attention, batch, tp, name)
    if isinstance(attention, CompressedAttention):
        return _compressed_core(attention, batch, tp, name)
    assert isinstance(attention, HeadAttention)
    key, value, heads = attention.head_dim, attention.v_head_dim, attention.heads
    pairs = seen_pairs(attention, batch)
    index = 2 * attention.index_heads * attention.index_dim * batch.pairs
    flops = (2 * heads * pairs * (key + value) + index) / tp
    kv = max(1, attention.kv_heads // tp) * (key + value)
    cached = batch.sequences * _reach(attention, batch) * kv
    cached += batch.cached_tokens * attention.index_values
    rows = batch.tokens * heads * (key + value) / tp + cached
    return Operator(name, flops, 0.0, rows * _BF16, "bf16_flops")


def seen_pairs(attention: HeadAttention, batch: TimedBatch) -> float:
    """(query, key) pairs that a layer multiplies: all, those within the window, or within the chunk."""
    window, past, new = attention.window, batch.past, batch.new
    if window is None:
        return batch.pairs
    if attention.type is not AttentionType.CHUNKED:
        return batch.sequences * causal_pairs(new, window, past)

    def upto(tokens: int) -> int:
        whole, rest = divmod(tokens, window)
        return whole * (window * (window + 1) // 2) + rest * (rest + 1) // 2

    return batch.sequences * (upto(past + new) - upto(past))


def _reach(attention: HeadAttention, batch: TimedBatch) -> int:
    """Positions of a request whose K/V is read: of a window its new tokens' and those it reaches back to."""
    everything = batch.past + batch.new
    if attention.window is None:
        return everything
    return min(everything, batch.new + attention.window - 1)


def _latent_core(attention: LatentAttention, batch: TimedBatch, tp: int, name: str) -> Operator:
    """MLA: in the heads in prefill, in the latent in decode; DSA over the keys that the indexer picks."""
    heads, rope = attention.heads, attention.qk_rope_head_dim
    key, value = attention.qk_head_dim, attention.v_head_dim
    if batch.phase is Phase.DECODE:
        key, value = attention.kv_lora_rank + rope, attention.kv_lora_rank
    pairs: float = batch.pairs
    read = batch.past + batch.new
    if attention.index_top_k:
        pairs = batch.sequences * causal_pairs(batch.new, attention.index_top_k, batch.past)
        read = min(read, attention.index_top_k + batch.new - 1)
    scores = 2 * attention.index_heads * attention.index_dim * batch.pairs if attention.index_values else 0
    flops = 2 * heads * pairs * (key + value) / tp + scores
    cached = batch.sequences * read * attention.kv_values + batch.cached_tokens * attention.index_values
    rows = batch.tokens * heads * (key + value) / tp + cached
    return Operator(name, flops, 0.0, rows * _BF16, "bf16_flops")


def _compressed_core(attention: CompressedAttention, batch: TimedBatch, tp: int, name: str) -> Operator:
    """A window, and the compressed entries before it or the best of them."""
    heads, width, ratio = attention.heads, attention.head_dim, attention.ratio
    near = batch.sequences * causal_pairs(batch.new, attention.window, batch.past)
    length = batch.past + batch.new
    entries = length // ratio if ratio else 0
    scored = batch.pairs / ratio if ratio else 0.0
    best = min(entries, attention.index_top_k or entries)
    far = min(scored, float(batch.tokens * best))
    index = 2 * attention.index_heads * attention.index_dim * scored
    flops = 4 * heads * width * (near + far) / tp + index
    cached = batch.sequences * (min(length, batch.new + attention.window - 1) + best) * width
    cached += batch.sequences * entries * attention.index_values
    rows = 2 * batch.tokens * heads * width / tp + cached
    return Operator(name, flops, 0.0, rows * _BF16, "bf16_flops")


def _state_core(
    kind: LayerKind, attention: LinearAttention | Mamba2, batch: TimedBatch, tp: int, name: str
) -> Operator:
    """The convolution and the recurrence; the state is read and written once a request."""
    conv = 2 * attention.conv * attention.conv_channels if attention.conv else 0
    flops = batch.tokens * (6 * attention.state_values + conv) / tp
    state = 2 * batch.sequences * state_bytes_of_layer(kind, Dtype.BF16, tp)
    inner = attention.inner if isinstance(attention, Mamba2) else attention.value_heads * attention.value_dim
    rows = batch.tokens * (attention.conv_channels + inner) / tp * _BF16
    return Operator(name, flops, 0.0, rows + state, "bf16_flops")


def feed_operators(
    spec: ModelSpec, kind: LayerKind, own: float, split: int, rows: float, unstated: WeightFormat
) -> tuple[Operator, ...]:
    """A dense FFN over ``own`` rows cut over ``split``; of LatentMoE its projections of ``rows``."""
    part, hidden = kind.feed_forward, spec.need("hidden", _WHY)
    if isinstance(part, DenseFfn):
        stored = part_format(spec, WeightPart.DENSE, unstated)
        matrices = list(ffn_matrices(WeightPart.DENSE, hidden, part.width, 1, 1, gated=part.gated))
        weights = sum(stored_bytes(stored, each.rows, each.columns) for each in matrices)
        flops = sum(2 * each.elements * own for each in matrices)
        each_row = 2 * own * hidden * _BF16
        return (Operator("dense FFN", flops / split, weights / split, each_row, rate_of(stored)),)
    if isinstance(part, MoeFfn) and part.latent:
        elements = 2 * hidden * part.latent
        each_row = 2 * rows * (hidden + part.latent) * _BF16
        stored = part_format(spec, WeightPart.ROUTER, unstated)
        weights = 2 * stored_bytes(stored, part.latent, hidden)
        return (Operator("latent projections", 2 * elements * rows, weights, each_row, rate_of(stored)),)
    return ()

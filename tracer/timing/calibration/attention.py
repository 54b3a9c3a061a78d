"""The physics of attention: a core in prefill and decode, DeepSeek's MLA block, and its sparse one (DSA)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING

from tracer.timing.calibration.fit import MICROSECOND, NANOSECOND, OpWork
from tracer.timing.calibration.formats import KernelDtype, flops_of, memory_of

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware

GROUPED_HEADS = 32
"""Most query heads per K/V head that the grouped decode kernels take; above it each head is a block."""
DTYPE_PAIRS = {
    ("bfloat16", "bfloat16"): 0.0,
    ("bfloat16", "fp8"): 1.0,
    ("fp8", "fp8"): 2.0,
    ("fp8", "bfloat16"): 2.0,
}
_FORMAT = {KernelDtype.BFLOAT16: 0.0, KernelDtype.FP8_BLOCK: 1.0, KernelDtype.NVFP4: 2.0}


def causal_pairs(new: float, window: float = 0, past: float = 0) -> float:
    """(query, key) pairs of ``new`` tokens after ``past``, each seeing at most ``window`` keys (0: all).

    >>> causal_pairs(4), causal_pairs(4, window=2), causal_pairs(2, past=3)
    (10.0, 7.0, 9.0)
    """
    if not window or window >= past + new:
        return new * past + new * (new + 1) / 2
    growing = max(0.0, min(new, window - past))
    return growing * past + growing * (growing + 1) / 2 + (new - growing) * window


def prefill_work(
    hardware: Hardware,
    batch: float,
    length: float,
    heads: float,
    kv_heads: float,
    head_dim: float,
    window: float,
    dtype: KernelDtype,
    kv_dtype: KernelDtype,
) -> OpWork:
    """Whole prompts through a causal attention core; 4 FLOPs per pair, head and value of a head.

    Limits: launch; arithmetic; Q, K, V and the output through memory; a prompt's length; blocks of a head
    and 128 rows.
    """
    flops, memory = flops_of(hardware, dtype, "attention"), memory_of(hardware, "attention")
    arithmetic = 4.0 * batch * heads * head_dim * causal_pairs(length, window) / flops
    rows = batch * length * (heads * 2 * head_dim * 2.0 + kv_heads * 2 * head_dim * kv_dtype.weight_bytes)
    moved = rows / memory
    blocks = batch * heads * (1 + length / 128)
    place = {
        "l": log2(length),
        "bh": log2(batch * heads),
        "g": log2(heads / kv_heads),
        "d": 2 * log2(head_dim),
        "dtype": DTYPE_PAIRS[dtype, kv_dtype],
        "w": 0.0 if not window else 4.0 + max(-3.0, min(7.0, log2(length / window))),
    }
    limits = (MICROSECOND, arithmetic, moved, length * NANOSECOND, blocks * NANOSECOND)
    return OpWork("prefill", limits, place, max(arithmetic, moved))


def decode_work(
    hardware: Hardware,
    batch: float,
    length: float,
    heads: float,
    kv_heads: float,
    head_dim: float,
    window: float,
    kv_dtype: KernelDtype,
) -> OpWork:
    """One new token per sequence against ``length`` cached ones (the new one included).

    Kernels that read K/V once per group of heads serve 2 to 32 heads per K/V head; one head per K/V head
    and wider groups run a block per head. Limits: launch; K/V through memory; blocks; each block's own
    reading; the walk along a sequence; arithmetic.
    """
    memory = memory_of(hardware, "attention")
    flops = flops_of(hardware, KernelDtype.BFLOAT16, "attention")
    group = heads / kv_heads
    grouped = 1 < group <= GROUPED_HEADS
    seen = min(window, length) if window else length
    blocks = batch * (kv_heads if grouped else heads)
    cache = 2.0 * batch * seen * kv_heads * head_dim * kv_dtype.weight_bytes
    moved = (cache + 4.0 * batch * heads * head_dim) / memory
    arithmetic = 4.0 * batch * heads * head_dim * seen / flops
    reading = 2.0 * blocks * seen * head_dim * kv_dtype.weight_bytes / memory
    limits = (MICROSECOND, moved, blocks * NANOSECOND, reading, seen * NANOSECOND, arithmetic)
    place = {
        "l": log2(seen),
        "blocks": log2(blocks),
        "g": log2(group),
        "d": 2 * log2(head_dim),
        "dtype": 0.0 if kv_dtype is KernelDtype.BFLOAT16 else 1.0,
        "w": 0.0 if not window else 3.0 + max(-2.0, min(6.0, log2(length / window))),
    }
    floor = max(moved, 0.5 * arithmetic if kv_dtype is KernelDtype.FP8 else arithmetic)
    return OpWork(f"{'grouped' if grouped else 'per_head'}/{kv_dtype}", limits, place, floor)


@dataclass(frozen=True, slots=True)
class LatentShape:
    """The fixed widths of a block with a compressed K/V: of DeepSeek-V3 and V3.2, or of GLM-5."""

    hidden: int
    q_rank: int
    nope: int
    value: int
    index_heads: int = 64
    rope: int = 64
    kv_rank: int = 512

    def weights(self, heads: float, *, indexer: bool = False) -> float:
        """Weights of the block's projections on a GPU that holds ``heads``."""
        down = self.hidden * (self.q_rank + self.kv_rank + self.rope)
        up = self.q_rank * heads * (self.nope + self.rope) + self.kv_rank * heads * (self.nope + self.value)
        index = self.q_rank * self.index_heads * 128 + self.hidden * 128
        return down + up + heads * self.value * self.hidden + (index if indexer else 0)


DEEPSEEK = LatentShape(7168, 1536, 128, 128)
GLM5 = LatentShape(6144, 2048, 192, 256, index_heads=32)
DSA_MODELS = {"deepseek-ai/DeepSeek-V3.2": DEEPSEEK, "zai-org/GLM-5": GLM5}
MEASURED_PAST = 128
"""Cached tokens before the prompts of the measured sparse blocks that had any."""
SPARSE_KEYS = 2048
"""Keys that the sparse attention of DeepSeek-V3.2 and GLM-5 keeps (index_topk of their configurations)."""


def _block_place(
    batch: float,
    length: float,
    heads: float,
    tokens: float,
    gemm_dtype: KernelDtype,
    kv_dtype: KernelDtype,
) -> dict[str, float]:
    """Coordinates of an attention block with its projections."""
    return {
        "l": log2(length),
        "b": log2(batch),
        "h": log2(heads),
        "t": log2(tokens),
        "format": _FORMAT[gemm_dtype],
        "kv": 0.0 if kv_dtype is KernelDtype.BFLOAT16 else 1.0,
    }


def mla_work(
    hardware: Hardware,
    prefill: bool,
    batch: float,
    length: float,
    heads: float,
    gemm_dtype: KernelDtype,
    kv_dtype: KernelDtype,
) -> OpWork:
    """DeepSeek-V3's attention block with its projections on a GPU that holds ``heads`` of its 128.

    Prefill multiplies with K/V of 192 and 128 values per head, decode with the 576 cached values that all
    heads share. Limits: launch; projections; their weights; attention; the cache; rows between kernels;
    blocks; a sequence's length.
    """
    memory = memory_of(hardware, "MLA")
    gemm, flops = flops_of(hardware, gemm_dtype, "MLA"), flops_of(hardware, KernelDtype.BFLOAT16, "MLA")
    tokens = batch * length if prefill else batch
    weights = DEEPSEEK.weights(heads)
    cached = batch * length * 576.0 * kv_dtype.weight_bytes
    if prefill:
        attention = 2.0 * batch * heads * causal_pairs(length) * (192 + 128)
        cache = (cached + tokens * heads * (192 * 2 + 128 + 256) * 2.0) / memory
        blocks = batch * heads * (1 + length / 128)
    else:
        attention, cache, blocks = 2.0 * batch * heads * length * (576 + 512), cached / memory, batch
    projections, read = 2.0 * tokens * weights / gemm, weights * gemm_dtype.weight_bytes / memory
    between = tokens * ((7168 + 2112) * 4 + heads * (192 + 128) * 6.0) / memory
    limits = (
        MICROSECOND,
        projections,
        read,
        attention / flops,
        cache,
        between,
        blocks * NANOSECOND,
        length * NANOSECOND,
    )
    place = _block_place(batch, length, heads, tokens, gemm_dtype, kv_dtype)
    lower = attention / flops / (2 if kv_dtype is KernelDtype.FP8 else 1)
    return OpWork(f"{gemm_dtype}/{kv_dtype}", limits, place, max(projections + lower, read + cached / memory))


def dsa_work(
    hardware: Hardware,
    prefill: bool,
    batch: float,
    length: float,
    heads: float,
    gemm_dtype: KernelDtype,
    kv_dtype: KernelDtype,
    model: str,
    past: float = 0,
) -> OpWork:
    """The sparse attention block: an FP8 indexer scores all keys, attention reads the best 2,048.

    Limits: launch; projections; their weights; attention; the cache; rows between kernels; the indexer;
    sequences; a sequence's length; heads.
    """
    shape, memory = DSA_MODELS[model], memory_of(hardware, "DSA")
    gemm, flops = flops_of(hardware, gemm_dtype, "DSA"), flops_of(hardware, KernelDtype.BFLOAT16, "DSA")
    tokens = batch * length if prefill else batch
    keys = causal_pairs(length, SPARSE_KEYS, past) if prefill else min(length, SPARSE_KEYS)
    scored = causal_pairs(length, past=past) if prefill else length
    index = 2.0 * batch * scored * shape.index_heads * 128 / flops_of(hardware, KernelDtype.FP8, "DSA")
    weights = shape.weights(heads, indexer=True)
    attention = 2.0 * batch * heads * keys * (576 + 512) / flops
    read = weights * gemm_dtype.weight_bytes / memory
    cached = batch * min(length + past, SPARSE_KEYS) * 576.0 * kv_dtype.weight_bytes / memory
    cache = (
        batch * keys * 576.0 * kv_dtype.weight_bytes / memory / 64
        if prefill
        else (cached + batch * length * 132.0 / memory)
    )
    between = tokens * ((shape.hidden + 2112) * 4 + heads * (shape.nope + 64 + shape.value) * 6.0) / memory
    projections = 2.0 * tokens * weights / gemm
    limits = (
        MICROSECOND,
        projections,
        read,
        attention,
        cache,
        between,
        index,
        batch * NANOSECOND,
        length * NANOSECOND,
        heads * NANOSECOND,
    )
    place = _block_place(batch, length, heads, tokens, gemm_dtype, kv_dtype)
    place["model"] = float(list(DSA_MODELS).index(model))
    place["past"] = log2(1 + past) / log2(1 + MEASURED_PAST)
    lower = attention / (2 if kv_dtype is KernelDtype.FP8 else 1)
    return OpWork(f"{gemm_dtype}/{kv_dtype}", limits, place, max(projections + lower, read + cached))

"""The physics of plain kernels: a GEMM, an activation quantise, a gated delta net."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from tracer.timing.calibration.fit import MICROSECOND, NANOSECOND, OpWork
from tracer.timing.calibration.formats import KernelDtype, flops_of, memory_of

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware

GDN_STATE = 128
"""Rows and columns of a head's state in a gated delta net (Qwen3-Next and Qwen3.5: 128 x 128)."""
GDN_CHUNK = 64
"""Tokens that the chunked kernel of a gated delta net works on at once."""
PREFILL_GDN = ("causal_conv1d_fn", "chunk_gated_delta_rule")
DECODE_GDN = ("causal_conv1d_update", "fused_recurrent_gated_delta_rule")


def gemm_work(hardware: Hardware, m: float, n: float, k: float, dtype: KernelDtype) -> OpWork:
    """C[m, n] = A[m, k] · B[k, n], accumulated into BF16.

    Limits: launch; 2mnk FLOPs; A, B and C once through memory; the walk along k, which a tile makes in
    steps whatever the number of tiles; A and C again, for the tiles that read or write them apart.
    """
    flops, memory = flops_of(hardware, dtype, "a GEMM"), memory_of(hardware, "a GEMM")
    arithmetic = 2.0 * m * n * k / flops
    rows = (m * k * dtype.weight_bytes + 2.0 * m * n) / memory
    moved = n * k * dtype.weight_bytes / memory + rows
    limits = (MICROSECOND, arithmetic, moved, k * NANOSECOND, rows)
    return OpWork(dtype, limits, {"m": log2(m), "n": log2(n), "k": log2(k)}, max(arithmetic, moved))


def quantize_work(hardware: Hardware, m: float, k: float) -> OpWork:
    """[m, k] activations from BF16 to FP8: read two bytes, write one."""
    moved = 3.0 * m * k / memory_of(hardware, "a quantise kernel")
    limits = (MICROSECOND, moved, m * NANOSECOND, k * NANOSECOND)
    return OpWork("bfloat16", limits, {"m": log2(m), "k": log2(k)}, moved)


def linear_attention_work(
    hardware: Hardware, kernel: str, batch: float, length: float, heads: float
) -> OpWork:
    """One kernel of a gated delta net: the short convolution, or the recurrence over heads' states.

    ``length`` is the number of new tokens per sequence (1 in decode). Limits: launch; a row's values in
    and out; the products with the state; the FP32 states in and out; the walk over a sequence's chunks;
    sequences; and blocks (sequence, head and chunk).
    """
    flops, memory = flops_of(hardware, KernelDtype.BFLOAT16, "a gated delta net"), memory_of(hardware, kernel)
    tokens = batch * length
    values = tokens * heads * GDN_STATE * 2.0 * 2 / memory
    products = 2.0 * tokens * heads * GDN_STATE**2 * 3 / flops
    states = batch * heads * GDN_STATE**2 * 4.0 * 2 / memory
    blocks = batch * heads * (1 + length / GDN_CHUNK)
    limits = (
        MICROSECOND,
        values,
        products,
        states,
        length * NANOSECOND,
        batch * NANOSECOND,
        blocks * NANOSECOND,
    )
    place = {"b": log2(batch), "t": log2(tokens), "h": log2(heads)}
    return OpWork(kernel, limits, place, max(values / 2, 0.0 if "conv1d" in kernel else states / 2))

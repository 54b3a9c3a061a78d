"""Each kind of call with the sizes along which its time grows, and the grid on which that is looked at."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tracer.scenario.token import Phase
from tracer.timing.calibration.attention import decode_work, dsa_work, mla_work, prefill_work
from tracer.timing.calibration.experts import moe_work
from tracer.timing.calibration.fit import Call
from tracer.timing.calibration.kernels import PREFILL_GDN, gemm_work, linear_attention_work, quantize_work
from tracer.timing.calibration.network import (
    CollectiveKind,
    Direction,
    Exchange,
    ExchangeMode,
    collective_work,
    exchange_work,
)

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware
    from tracer.timing.calibration.experts import Loads
    from tracer.timing.calibration.formats import KernelDtype


def _powers(*exponents: float) -> tuple[float, ...]:
    return tuple(2.0**exponent for exponent in exponents)


ROWS = _powers(0, 4, 5, 6, 7, 8, 9, 10, 12, 15)
WIDTHS = _powers(5, 7, 9, 11, 13, 16)
BATCHES = _powers(0, 2, 4, 5, 6, 7, 8, 9, 10)
PROMPTS = _powers(0, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15)
CONTEXTS = _powers(1, 4, 7, 9, 10, 11, 12, 13, 14, 15, 17)
TOKENS = _powers(0, 3, 5, 7, 9, 11, 13, 14)
MESSAGES = _powers(*range(7, 30))


def gemm_call(hardware: Hardware, m: int, n: int, k: int, dtype: KernelDtype) -> Call:
    """A GEMM, growing with each of its three sizes."""
    work = partial(gemm_work, hardware, dtype=dtype)
    return Call("gemm", work, (m, n, k), (ROWS, WIDTHS, WIDTHS))


def quantize_call(hardware: Hardware, m: int, k: int) -> Call:
    """A quantise kernel, growing with rows and columns."""
    return Call("quantize", partial(quantize_work, hardware), (m, k), (ROWS, WIDTHS))


def linear_attention_call(hardware: Hardware, kernel: str, batch: int, length: int, heads: int) -> Call:
    """A kernel of a gated delta net, growing with sequences, and with their length.

    The short convolution of a prompt does not grow with length alone: below 8 tokens another kernel runs
    and is measured as slower.
    """
    if kernel == PREFILL_GDN[0]:
        return Call(
            "linear_attention",
            lambda b: linear_attention_work(hardware, kernel, b, length, heads),
            (batch,),
            (BATCHES,),
        )
    return Call(
        "linear_attention",
        lambda b, tokens: linear_attention_work(hardware, kernel, b, tokens, heads),
        (batch, length),
        (BATCHES, PROMPTS),
    )


def prefill_call(
    hardware: Hardware,
    batch: int,
    length: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    window: int,
    dtype: KernelDtype,
    kv_dtype: KernelDtype,
) -> Call:
    """Attention over whole prompts."""
    rest = (heads, kv_heads, head_dim, window, dtype, kv_dtype)
    return Call(
        "prefill_attention",
        lambda b, tokens: prefill_work(hardware, b, tokens, *rest),
        (batch, length),
        (BATCHES, PROMPTS),
    )


def decode_call(
    hardware: Hardware,
    batch: int,
    length: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    window: int,
    kv_dtype: KernelDtype,
) -> Call:
    """Attention of one new token per sequence."""
    rest = (heads, kv_heads, head_dim, window, kv_dtype)
    return Call(
        "decode_attention",
        lambda b, tokens: decode_work(hardware, b, tokens, *rest),
        (batch, length),
        (BATCHES, CONTEXTS),
    )


def mla_call(
    hardware: Hardware,
    phase: Phase,
    batch: int,
    length: int,
    heads: int,
    gemm_dtype: KernelDtype,
    kv_dtype: KernelDtype,
) -> Call:
    """DeepSeek's MLA block."""
    prefill = phase is Phase.PREFILL
    return Call(
        f"mla_{phase}",
        lambda b, tokens: mla_work(hardware, prefill, b, tokens, heads, gemm_dtype, kv_dtype),
        (batch, length),
        (BATCHES, PROMPTS if prefill else CONTEXTS),
    )


def dsa_call(
    hardware: Hardware,
    phase: Phase,
    batch: int,
    length: int,
    heads: int,
    gemm_dtype: KernelDtype,
    kv_dtype: KernelDtype,
    model: str,
    past: int = 0,
) -> Call:
    """DeepSeek's sparse attention block."""
    prefill = phase is Phase.PREFILL
    return Call(
        f"dsa_{phase}",
        lambda b, tokens: dsa_work(
            hardware, prefill, b, tokens, heads, gemm_dtype, kv_dtype, model, past if prefill else 0
        ),
        (batch, length),
        (BATCHES, PROMPTS if prefill else CONTEXTS),
    )


def moe_call(
    hardware: Hardware,
    tokens: int,
    hidden: int,
    expert_hidden: float,
    experts: int,
    top_k: int,
    ep: int,
    dtype: KernelDtype,
    distribution: str | Loads,
    kernel: str,
    matrices: int,
) -> Call:
    """Routed experts on the busiest GPU, growing with the group's tokens."""
    rest = (hidden, expert_hidden, experts, top_k, ep, dtype, distribution, kernel, matrices)
    return Call("moe", lambda count: moe_work(hardware, count, *rest), (tokens,), (TOKENS,))


def collective_call(hardware: Hardware, kind: CollectiveKind, gpus: int, nbytes: float) -> Call:
    """A collective inside an NVLink domain, growing with its bytes."""
    name = "custom_all_reduce" if kind is CollectiveKind.CUSTOM_ALL_REDUCE else "nccl"
    return Call(name, lambda size: collective_work(hardware, kind, gpus, size), (nbytes,), (MESSAGES,))


def exchange_call(
    hardware: Hardware,
    mode: ExchangeMode,
    direction: Direction,
    nodes: int,
    gpus_per_node: int,
    tokens: int,
    hidden: int,
    top_k: int,
    experts: int,
    dtype: KernelDtype,
) -> Call:
    """A dispatch or combine, growing with the tokens of a GPU."""
    rest = (hidden, top_k, experts, dtype)
    return Call(
        "deepep",
        lambda count: exchange_work(hardware, Exchange(mode, direction, nodes, gpus_per_node, count, *rest)),
        (tokens,),
        (_powers(0, 2, 4, 6, 8, 10, 12, 14, 16),),
    )

"""Bytes of elements in the dtypes a scenario declares."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tracer.errors import one_of

BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
_FLOATS = ("bf16", "fp16", "fp32")
_ALLOWED = {
    "activations": _FLOATS,
    "kv": (*_FLOATS, "fp8"),
    "dispatch": (*_FLOATS, "fp8"),
    "combine": _FLOATS,
    "logits": ("fp32", "bf16", "fp16"),
    "weights": (*_FLOATS, "fp8"),
}
LOW_LATENCY_HEADER_BYTES = 16
FP8_BLOCK = 128


@dataclass(frozen=True, slots=True)
class Dtypes:
    """Declared dtypes: of activations, K/V, dispatched rows, combined rows, logits and weights."""

    activations: str = "bf16"
    kv: str = "bf16"
    dispatch: str = "bf16"
    combine: str = "bf16"
    logits: str = "fp32"
    weights: str = "bf16"

    def __post_init__(self) -> None:
        for item in fields(self):
            one_of(f"dtype.{item.name}", getattr(self, item.name), _ALLOWED[item.name])


def dispatch_row_bytes(hidden: int, dtype: str, *, low_latency: bool) -> int:
    """Bytes of one dispatched row of ``hidden`` elements.

    FP8 carries one FP32 scale for each block of 128 elements; a low-latency FP8 message has a header
    of 16 bytes more (DeepEP, ``tests/legacy/test_low_latency.py``).

    >>> dispatch_row_bytes(7168, "fp8", low_latency=False), dispatch_row_bytes(7168, "fp8", low_latency=True)
    (7392, 7408)
    """
    if dtype != "fp8":
        return hidden * BYTES[dtype]
    scales = -(-hidden // FP8_BLOCK) * BYTES["fp32"]
    return hidden + scales + (LOW_LATENCY_HEADER_BYTES if low_latency else 0)

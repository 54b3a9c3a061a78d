"""Bytes of elements in the dtypes a scenario declares."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from tracer.errors import one_of


class Dtype(StrEnum):
    """The type of an element that moves or is kept."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"


BYTES: dict[str, int] = {Dtype.FP32: 4, Dtype.BF16: 2, Dtype.FP16: 2, Dtype.FP8: 1}
_FLOATS = ("bf16", "fp16", "fp32")
ALLOWED = {
    "activations": _FLOATS,
    "kv": (*_FLOATS, "fp8"),
    "dispatch": (*_FLOATS, "fp8"),
    "combine": _FLOATS,
    "logits": ("fp32", "bf16", "fp16"),
    "weights": (*_FLOATS, "fp8"),
    "tp_gather": (*_FLOATS, "fp8"),
}
"""The dtypes that each of a scenario's declared dtypes may have."""
LOW_LATENCY_HEADER_BYTES = 16
FP8_BLOCK = 128


@dataclass(frozen=True, slots=True)
class Dtypes:
    """Declared dtypes: of activations, K/V, dispatched rows, combined rows, logits and weights.

    A dtype may be given as text; it is kept as the member of the enum. ``tp_gather`` is that of the rows that
    TP gathers before a split matmul (None: the activations'); FP8 there is one byte an element, with one
    scale for the whole tensor that is not counted.
    """

    activations: Dtype = Dtype.BF16
    kv: Dtype = Dtype.BF16
    dispatch: Dtype = Dtype.BF16
    combine: Dtype = Dtype.BF16
    logits: Dtype = Dtype.FP32
    weights: Dtype = Dtype.BF16
    tp_gather: Dtype | None = None

    @property
    def gathered(self) -> Dtype:
        """Of rows that TP gathers before a split matmul."""
        return self.activations if self.tp_gather is None else self.tp_gather

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.name == "tp_gather" and self.tp_gather is None:
                continue
            word = one_of(f"dtype.{item.name}", getattr(self, item.name), ALLOWED[item.name])
            object.__setattr__(self, item.name, Dtype(word))


def dispatch_row_bytes(hidden: int, dtype: str, *, low_latency: bool) -> int:
    """Bytes of one dispatched row of ``hidden`` elements.

    FP8 carries one FP32 scale for each block of 128 elements; a low-latency FP8 message has a header
    of 16 bytes more (DeepEP, ``tests/legacy/test_low_latency.py``).

    >>> dispatch_row_bytes(7168, "fp8", low_latency=False), dispatch_row_bytes(7168, "fp8", low_latency=True)
    (7392, 7408)
    """
    if dtype != Dtype.FP8:
        return hidden * BYTES[dtype]
    scales = -(-hidden // FP8_BLOCK) * BYTES[Dtype.FP32]
    return hidden + scales + (LOW_LATENCY_HEADER_BYTES if low_latency else 0)

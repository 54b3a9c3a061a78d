"""Number formats of measured kernels: bytes per value, and which peak rate multiplies them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.mesh.hardware import Hardware


class KernelDtype(StrEnum):
    """Formats by the names that the measured tables use."""

    BFLOAT16 = "bfloat16"
    FP8 = "fp8"
    FP8_BLOCK = "fp8_block"
    NVFP4 = "nvfp4"
    W4A16_MXFP4 = "w4a16_mxfp4"
    W4A8_MXFP4_MXFP8 = "w4a8_mxfp4_mxfp8"

    @property
    def weight_bytes(self) -> float:
        """Bytes per weight; four-bit formats with their block scales (16 values for nvfp4, 32 for mxfp4)."""
        return _WEIGHT_BYTES[self]

    @property
    def rate(self) -> str:
        """The figure of :class:`~tracer.mesh.hardware.Hardware` that multiplies this format."""
        return _RATES[self]


_WEIGHT_BYTES = {
    KernelDtype.BFLOAT16: 2.0,
    KernelDtype.FP8: 1.0,
    KernelDtype.FP8_BLOCK: 1.0,
    KernelDtype.NVFP4: 0.5 + 1 / 16,
    KernelDtype.W4A16_MXFP4: 0.5 + 1 / 32,
    KernelDtype.W4A8_MXFP4_MXFP8: 0.5 + 1 / 32,
}
_RATES = {
    KernelDtype.BFLOAT16: "bf16_flops",
    KernelDtype.FP8: "fp8_flops",
    KernelDtype.FP8_BLOCK: "fp8_flops",
    KernelDtype.NVFP4: "fp4_flops",
    KernelDtype.W4A16_MXFP4: "bf16_flops",
    KernelDtype.W4A8_MXFP4_MXFP8: "fp8_flops",
}
GEMM_DTYPES = (KernelDtype.BFLOAT16, KernelDtype.FP8, KernelDtype.FP8_BLOCK, KernelDtype.NVFP4)
MODULE_DTYPES = (KernelDtype.BFLOAT16, KernelDtype.FP8_BLOCK, KernelDtype.NVFP4)
CACHE_DTYPES = (KernelDtype.BFLOAT16, KernelDtype.FP8)


def flops_of(hardware: Hardware, dtype: KernelDtype, what: str) -> float:
    """Peak FLOPs per second for a format.

    Raises:
        ConfigError: when no source states them, as for FP8 on a GPU without it.
    """
    return hardware.need(dtype.rate, f"time {what} in {dtype}")


def memory_of(hardware: Hardware, what: str) -> float:
    """Peak bytes per second of HBM.

    Raises:
        ConfigError: when no source states them.
    """
    return hardware.need("hbm_bytes_per_s", f"time {what}")

"""How a weight is stored, and the bytes a stored matrix takes."""

from __future__ import annotations

from enum import StrEnum

FP8_BLOCK = 128
MXFP4_BLOCK = 32
NVFP4_BLOCK = 16


class WeightFormat(StrEnum):
    """Storage of one weight matrix.

    ``fp8_block128``: one byte a weight, and one FP32 scale a 128 x 128 block
    (``quantization_config`` with ``weight_block_size`` [128, 128]; DeepSeek-V3 report, section 3.3.2).
    ``mxfp4``: four bits a weight, and one 8-bit scale for 32 weights in a row
    (OCP Microscaling Formats v1.0, section 5.2).
    ``nvfp4``: four bits a weight, and one FP8 scale for 16 weights in a row (NVIDIA's NVFP4 blocks; the
    one FP32 scale of a whole tensor is not counted).
    ``fp8`` counts no scales.
    """

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    FP8_BLOCK128 = "fp8_block128"
    MXFP4 = "mxfp4"
    NVFP4 = "nvfp4"


_PLAIN_BYTES = {WeightFormat.FP32: 4, WeightFormat.FP16: 2, WeightFormat.BF16: 2, WeightFormat.FP8: 1}


def stored_bytes(weight_format: WeightFormat, rows: int, columns: int) -> int:
    """Bytes of one ``[rows, columns]`` matrix with its scales; a block that is cut short has a scale too.

    >>> stored_bytes(WeightFormat.BF16, 2048, 7168)
    29360128
    >>> stored_bytes(WeightFormat.FP8_BLOCK128, 576, 7168) - 576 * 7168   # 5 x 56 blocks, 4 bytes each
    1120
    >>> stored_bytes(WeightFormat.MXFP4, 2880, 2880) * 8 / 2880**2        # bits a weight
    4.25
    >>> stored_bytes(WeightFormat.NVFP4, 2048, 7168) * 8 / (2048 * 7168)
    4.5
    """
    if weight_format == WeightFormat.FP8_BLOCK128:
        return rows * columns + 4 * _blocks(rows, FP8_BLOCK) * _blocks(columns, FP8_BLOCK)
    if weight_format == WeightFormat.MXFP4:
        return rows * (_blocks(columns, 2) + _blocks(columns, MXFP4_BLOCK))
    if weight_format == WeightFormat.NVFP4:
        return rows * (_blocks(columns, 2) + _blocks(columns, NVFP4_BLOCK))
    return rows * columns * _PLAIN_BYTES[weight_format]


def _blocks(length: int, block: int) -> int:
    """Blocks that cover ``length``, the last one perhaps in part."""
    return -(-length // block)

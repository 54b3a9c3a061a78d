"""How a weight is stored, and the bytes a stored matrix takes."""

from __future__ import annotations

from enum import StrEnum

FP8_BLOCK = 128
MXFP4_BLOCK = 32
NVFP4_BLOCK = 16


class WeightFormat(StrEnum):
    """Storage of one weight matrix.

    ``fp8_block128``: one byte per weight, and one FP32 scale per 128 x 128 block
    (``quantization_config`` with ``weight_block_size`` [128, 128]; DeepSeek-V3 report, section 3.3.2).
    ``fp8_block128_ue8m0``: the same with scales of one byte (``scale_fmt`` "ue8m0" with
    ``expert_dtype`` "fp4": DeepSeek-V4).
    ``fp8`` and ``int8`` count no scales: one per tensor. ``fp8_channel`` and ``int8_channel``: one FP32
    scale per row. ``mxfp8``: one byte per weight, and one 8-bit scale for 32 weights in a row.
    ``mxfp4``: four bits per weight, and one 8-bit scale for 32 weights in a row
    (OCP Microscaling Formats v1.0, section 5.2).
    ``nvfp4``: four bits per weight, and one FP8 scale for 16 weights in a row (NVIDIA's NVFP4 blocks; the
    one FP32 scale of a whole tensor is not counted).
    ``int4_g32``, ``int4_g64``, ``int4_g128``: four bits per weight, and one 16-bit scale per group of a row
    (compressed-tensors "pack-quantized", symmetric). ``int4_zero_g...``: a 4-bit zero point per group too
    (AWQ, GPTQ). ``int4_channel``: one 16-bit scale per row. ``int8_g...``: eight bits, and one 16-bit scale
    per group; ``int8_zero_g...``: an 8-bit zero point per group too (GPTQ).
    ``nf4``: four bits per weight, and one FP32 scale for 64 weights (bitsandbytes);
    ``nf4_double``: those scales in 8 bits, and one FP32 scale for 256 of them (double quantisation).
    """

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    FP8_BLOCK128 = "fp8_block128"
    FP8_BLOCK128_UE8M0 = "fp8_block128_ue8m0"
    FP8_CHANNEL = "fp8_channel"
    MXFP8 = "mxfp8"
    MXFP4 = "mxfp4"
    NVFP4 = "nvfp4"
    INT8 = "int8"
    INT8_CHANNEL = "int8_channel"
    INT8_G32 = "int8_g32"
    INT8_G64 = "int8_g64"
    INT8_G128 = "int8_g128"
    INT8_ZERO_G32 = "int8_zero_g32"
    INT8_ZERO_G64 = "int8_zero_g64"
    INT8_ZERO_G128 = "int8_zero_g128"
    INT4_G32 = "int4_g32"
    INT4_G64 = "int4_g64"
    INT4_G128 = "int4_g128"
    INT4_CHANNEL = "int4_channel"
    INT4_ZERO_G32 = "int4_zero_g32"
    INT4_ZERO_G64 = "int4_zero_g64"
    INT4_ZERO_G128 = "int4_zero_g128"
    NF4 = "nf4"
    NF4_DOUBLE = "nf4_double"


_PLAIN_BYTES = {
    WeightFormat.FP32: 4,
    WeightFormat.FP16: 2,
    WeightFormat.BF16: 2,
    WeightFormat.FP8: 1,
    WeightFormat.INT8: 1,
}
_BLOCK_SCALE_BYTES = {WeightFormat.FP8_BLOCK128: 4, WeightFormat.FP8_BLOCK128_UE8M0: 1}
# format -> (bits of a weight, weights in a row that share a scale (0: the row), bits of a scale and a zero)
_ROW_GROUPS = {
    WeightFormat.FP8_CHANNEL: (8, 0, 32),
    WeightFormat.INT8_CHANNEL: (8, 0, 32),
    WeightFormat.MXFP8: (8, 32, 8),
    WeightFormat.MXFP4: (4, MXFP4_BLOCK, 8),
    WeightFormat.NVFP4: (4, NVFP4_BLOCK, 8),
    WeightFormat.INT8_G32: (8, 32, 16),
    WeightFormat.INT8_G64: (8, 64, 16),
    WeightFormat.INT8_G128: (8, 128, 16),
    WeightFormat.INT8_ZERO_G32: (8, 32, 24),
    WeightFormat.INT8_ZERO_G64: (8, 64, 24),
    WeightFormat.INT8_ZERO_G128: (8, 128, 24),
    WeightFormat.INT4_G32: (4, 32, 16),
    WeightFormat.INT4_G64: (4, 64, 16),
    WeightFormat.INT4_G128: (4, 128, 16),
    WeightFormat.INT4_CHANNEL: (4, 0, 16),
    WeightFormat.INT4_ZERO_G32: (4, 32, 20),
    WeightFormat.INT4_ZERO_G64: (4, 64, 20),
    WeightFormat.INT4_ZERO_G128: (4, 128, 20),
}


def stored_bytes(weight_format: WeightFormat, rows: int, columns: int) -> int:
    """Bytes of one ``[rows, columns]`` matrix with its scales; a block that is cut short has a scale too.

    >>> stored_bytes(WeightFormat.BF16, 2048, 7168)
    29360128
    >>> stored_bytes(WeightFormat.FP8_BLOCK128, 576, 7168) - 576 * 7168   # 5 x 56 blocks, 4 bytes each
    1120
    >>> stored_bytes(WeightFormat.MXFP4, 2880, 2880) * 8 / 2880**2        # bits per weight
    4.25
    >>> stored_bytes(WeightFormat.NVFP4, 2048, 7168) * 8 / (2048 * 7168)
    4.5
    """
    if weight_format in _BLOCK_SCALE_BYTES:
        blocks = _blocks(rows, FP8_BLOCK) * _blocks(columns, FP8_BLOCK)
        return rows * columns + _BLOCK_SCALE_BYTES[weight_format] * blocks
    if weight_format in _ROW_GROUPS:
        bits, group, scale_bits = _ROW_GROUPS[weight_format]
        scales = rows * (_blocks(columns, group) if group else 1)
        return rows * _blocks(columns * bits, 8) + _blocks(scales * scale_bits, 8)
    if weight_format in (WeightFormat.NF4, WeightFormat.NF4_DOUBLE):
        blocks = _blocks(rows * columns, 64)
        scales = blocks * 4 if weight_format is WeightFormat.NF4 else blocks + 4 * _blocks(blocks, 256)
        return _blocks(rows * columns, 2) + scales
    return rows * columns * _PLAIN_BYTES[weight_format]


def _blocks(length: int, block: int) -> int:
    """Blocks that cover ``length``, the last one perhaps in part."""
    return -(-length // block)

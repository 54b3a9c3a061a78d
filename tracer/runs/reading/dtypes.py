"""Element types in the words of PyTorch, Kineto and NCCL, and their width."""

from __future__ import annotations

NCCL_DTYPES = (
    "Char", "Byte", "Int", "UInt32", "Long", "UInt64", "Half", "Float", "Double", "BFloat16",
    "Float8_e4m3fn", "Float8_e5m2",
)  # fmt: skip
"""``ncclDataType_t`` by number (``nccl.h``)."""

_WIDTHS = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "byte": 1, "char": 1, "short": 2, "int": 4, "long": 8,
    "bool": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "complexfloat": 8, "complexdouble": 16,
}  # fmt: skip
_ALIASES = {"float32": "float", "float16": "half", "float64": "double", "uint8": "byte", "int8": "char",
            "int32": "int", "int64": "long", "int16": "short"}  # fmt: skip
_INTEGERS = ("long", "int", "short", "uint32", "uint64")
_OURS = {"bfloat16": "bf16", "half": "fp16", "float": "fp32"}


def plain(dtype: str) -> str:
    """A dtype's name in lower case and without ``torch.`` or ``c10::``.

    >>> plain("c10::BFloat16"), plain("torch.float32")
    ('bfloat16', 'float')
    """
    word = dtype.rsplit("::", 1)[-1].rsplit(".", 1)[-1].lower()
    return _ALIASES.get(word, word)


def bytes_of(dtype: str) -> int | None:
    """Width of one element in bytes, or None for a name that is not known."""
    return _WIDTHS.get(plain(dtype))


def is_integer(dtype: str) -> bool:
    """Whether elements are counts or ids: whole numbers wider than a byte."""
    return plain(dtype) in _INTEGERS


def is_fp8(dtype: str) -> bool:
    """Whether elements are one byte wide: FP8, or the bytes that carry it."""
    return bytes_of(dtype) == 1 and plain(dtype) != "bool"


def ours(dtype: str) -> str | None:
    """The word a scenario uses for a float dtype, or None.

    >>> ours("BFloat16"), ours("Byte"), ours("Long")
    ('bf16', 'fp8', None)
    """
    return "fp8" if is_fp8(dtype) else _OURS.get(plain(dtype))

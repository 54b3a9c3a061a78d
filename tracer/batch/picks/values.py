"""Files of numbers as plain values: dicts, lists and arrays, whatever the container; nothing in them is run.

``.npy``, ``.npz``, ``.json``, ``.csv``, ``.pt`` and ``.pth`` (``torch.save``), and ``.safetensors`` (an
eight-byte length, a JSON header of names, dtypes, shapes and offsets, then the bytes: the README of
huggingface/safetensors).
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.picks.npy import MAX_UNPACKED_BYTES, load_arrays
from tracer.batch.picks.torch_file import SUFFIXES as TORCH
from tracer.batch.picks.torch_file import load_torch
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.picks.source import Readable

SUFFIXES = (".npy", ".npz", ".json", ".csv", *TORCH, ".safetensors")
MAX_TEXT_BYTES = 1 << 28
MAX_HEADER_BYTES = 1 << 24
_DTYPES = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "F64": "<f8", "F32": "<f4"}


def read_value(path: Readable, field: str) -> Any:
    """What a file holds: an array, or dicts and lists of arrays and numbers.

    Raises:
        ConfigError: for a file that no reader knows, cannot be read, or unpacks to too much.
    """
    suffix = path.suffix.lower()
    if suffix == ".json":
        return read_json(path, field)
    if suffix == ".csv":
        return _read_csv(path, field)
    if suffix in TORCH:
        return load_torch(path, field)
    if suffix == ".safetensors":
        return _read_safetensors(path, field)
    if suffix in (".npy", ".npz"):
        arrays = load_arrays(path)
        return arrays["picks"] if suffix == ".npy" else arrays
    raise ConfigError(field, str(path), "has a suffix no reader knows", f"give {' '.join(SUFFIXES)}")


def read_json(path: Readable, field: str) -> Any:
    """The value in a JSON file.

    Raises:
        ConfigError: for other text.
    """
    try:
        return json.loads(_read_text(path, field))
    except (ValueError, RecursionError) as error:
        raise ConfigError(field, str(path), f"is not valid JSON: {error}", "mend the text") from error


def _read_text(path: Readable, field: str) -> str:
    data = _read_bytes(path, field)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(field, str(path), f"is not UTF-8 text: {error}", "send UTF-8 text") from error


def _read_bytes(path: Readable, field: str) -> bytes:
    try:
        if isinstance(path, Path) and path.stat().st_size > MAX_TEXT_BYTES:
            rule = f"is over the {MAX_TEXT_BYTES:,} bytes that are read at once"
            raise ConfigError(field, str(path), rule, "save an .npy, or fewer steps")
        with path.open("rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(field, str(path), f"cannot be read: {error}", "check the path") from error


def _read_csv(path: Readable, field: str) -> NDArray[np.float64]:
    """Rows of numbers; a first line of words is passed over."""
    lines = [line for line in _read_text(path, field).splitlines() if line.strip()]
    if lines and any(char.isalpha() for char in lines[0].lower().replace("e", "").replace("nan", "")):
        lines = lines[1:]
    rows = [line.replace(";", ",").replace("\t", ",").split(",") for line in lines]
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            rule = f"has {len(row)} numbers in row {number} and {len(rows[0])} in the first"
            raise ConfigError(field, str(path), rule, "give one line a layer and one number an expert")
    try:
        return np.array([[float(cell) for cell in row] for row in rows], np.float64)
    except ValueError as error:
        raise ConfigError(field, str(path), f"is no table of numbers: {error}", "mend the cell") from error


def _read_safetensors(path: Readable, field: str) -> dict[str, NDArray[Any]]:
    data = _read_bytes(path, field)
    try:
        length = int.from_bytes(data[:8], "little")
        if length > min(MAX_HEADER_BYTES, len(data) - 8):
            raise ValueError(f"its header says {length:,} bytes")
        header = json.loads(data[8 : 8 + length])
        body = memoryview(data)[8 + length :]
        return {name: _tensor(name, entry, body) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            field, str(path), f"is not a .safetensors file that is read: {error}", "write it again"
        ) from error


def _tensor(name: str, entry: dict[str, Any], body: memoryview) -> NDArray[Any]:
    if entry["dtype"] not in _DTYPES:
        raise ValueError(f"{name[:40]} is {str(entry['dtype'])[:10]}, not one of {' '.join(_DTYPES)}")
    dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
    start, stop = entry["data_offsets"]
    sizes = all(type(size) is int and 0 <= size <= MAX_UNPACKED_BYTES for size in (*shape, start, stop))
    if not sizes or stop > len(body) or stop - start != prod(shape) * dtype.itemsize:
        raise ValueError(f"{name[:40]} is not as large as its shape says")
    return np.frombuffer(body[start:stop], dtype).reshape(shape)

"""What an ``.npy`` or ``.npz`` says it unpacks to, measured before it is unpacked."""

from __future__ import annotations

import zipfile
import zlib
from math import prod
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.picks.in_memory import Readable

MAX_UNPACKED_BYTES = 1 << 28
MAX_HEADER_BYTES = 1 << 14


def check_unpacked(path: Readable, file: IO[bytes]) -> None:
    """Refuse an open file that unpacks to too much, or whose arrays say they are larger than their bytes.

    Raises:
        ConfigError: naming the array.
    """
    start = file.read(4)
    size = file.seek(0, 2)
    file.seek(0)
    if start.startswith(b"PK"):
        _check_archive(path, file)
    else:
        _check_size(path, size)
        _check_array(str(path), file, size)
    file.seek(0)


def header_of(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """(shape, whether in Fortran order, dtype) at the start of an open ``.npy``.

    Raises:
        ConfigError: for anything but an array without Python objects.
    """
    try:
        shape, fortran, dtype = _header(file)
    except Exception as error:  # the text of a header may end in any of the parser's errors
        raise ConfigError("picks", name, f"cannot be read: {error}", "give a .npy of integers") from error
    if dtype.hasobject:
        raise ConfigError("picks", name, "holds Python objects", "save an array of integers")
    return shape, fortran, dtype


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    start = file.read(12)
    width = 2 if start[6:8] == b"\x01\x00" else 4
    if int.from_bytes(start[8 : 8 + width], "little") > MAX_HEADER_BYTES:
        raise ValueError("the header is too long")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"the header says shape {shape}")
    return tuple(shape), bool(fortran), dtype


def _check_archive(path: Readable, file: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check_size(path, sum(member.file_size for member in members))
            for member in members:
                with archive.open(member) as array:
                    _check_array(member.filename, array, member.file_size)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        rule = f"is not an .npz: {error}"
        raise ConfigError("picks", str(path), rule, "write it with np.savez") from error


def _check_size(path: Readable, size: int) -> None:
    if size > MAX_UNPACKED_BYTES:
        rule = f"unpacks to {size:,} bytes, more than the {MAX_UNPACKED_BYTES:,} that are read at once"
        fix = "save one integer .npy [layers, tokens, k], which is read in blocks, or fewer tokens"
        raise ConfigError("picks", str(path), rule, fix)


def _check_array(name: str, file: IO[bytes], size: int) -> None:
    """The header of an array must fit into the bytes that hold it."""
    shape, _, dtype = header_of(file, name)
    if prod(shape) * dtype.itemsize > size:
        rule = f"says it holds {list(shape)} of {dtype}, more than its {size:,} bytes"
        raise ConfigError("picks", name, rule, "write it again")

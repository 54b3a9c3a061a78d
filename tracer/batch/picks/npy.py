"""Picks in ``.npy`` and ``.npz`` files, never unpickled; a large ``.npy`` is read in blocks.

numpy parses the headers and loads small files. Two things are done here because numpy's way would hurt:

- The sizes that a file claims are checked before anything is unpacked. ``np.load`` reads a header of up to
  4 GB before it refuses it, and unpacks an archive before anyone can see how large it is.
- Blocks are read with ``readinto``, not through ``np.load(mmap_mode="r")``: a mapped file that is cut short
  while it is read ends the process with a signal, and its pages count as memory of a Dask worker, which
  may pause for that.
"""

from __future__ import annotations

import threading
import zipfile
import zlib
from dataclasses import dataclass, field
from io import RawIOBase
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.picks.source import Picks, Readable


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


@dataclass(frozen=True)
class NpyPicks:
    """Picks ``[layers, tokens, k]`` (or ``[tokens, k]``: one layer) of a ``.npy`` file, read on demand.

    Each read opens the file and copies one block, so that memory holds no more than that.

    Raises:
        ConfigError: for a file that is no such array.
    """

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, int, int]
    offset: int
    _own: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_own"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _own=threading.local())

    @classmethod
    def open(cls, path: Path) -> NpyPicks:
        """Read the header alone."""
        shape, fortran, dtype, offset = read_header(path)
        if not np.issubdtype(dtype, np.integer):
            raise ConfigError("picks", f"{dtype} in {path.name}", "must be integers", "convert the ids")
        if len(shape) == 2:
            shape = (1, *shape)
        if len(shape) != 3 or fortran:
            got = f"{list(shape)}{' in Fortran order' if fortran else ''}"
            raise ConfigError(
                "picks", got, "must be [layers, tokens, k] in C order", "np.save(np.ascontiguousarray(picks))"
            )
        size = offset + int(np.prod(shape, dtype=object)) * dtype.itemsize
        if path.stat().st_size < size:
            raise ConfigError("picks", path.name, f"is cut short of its {size:,} bytes", "write it again")
        return cls(path, dtype, (shape[0], shape[1], shape[2]), offset)

    @property
    def layers(self) -> int:
        """Layers in the file."""
        return self.shape[0]

    @property
    def tokens(self) -> int:
        """Tokens in each layer."""
        return self.shape[1]

    @property
    def top_k(self) -> int:
        """Picks a token."""
        return self.shape[2]

    def read(self, layer: int, start: int, stop: int) -> Picks:
        """One block, copied from the file."""
        return self.borrow(layer, start, stop).copy()

    def borrow(self, layer: int, start: int, stop: int) -> Picks:
        """One block in a buffer of the thread's, which its next call fills anew.

        A fresh array a block would be given back to the system and cleared by it every time: Dask's
        workers trim their memory at once.
        """
        width, rows = self.shape[2], stop - start
        size = rows * width * self.dtype.itemsize
        buffer: NDArray[np.uint8] | None = getattr(self._own, "buffer", None)
        if buffer is None or len(buffer) < size:
            buffer = self._own.buffer = np.empty(size, np.uint8)
        with self.path.open("rb", buffering=0) as file:
            file.seek(self.offset + (layer * self.shape[1] + start) * width * self.dtype.itemsize)
            _fill(file, buffer.data[:size])
        found: Picks = buffer[:size].view(self.dtype).reshape(rows, width)
        native = found.dtype.newbyteorder("=")
        return found if found.dtype == native else found.astype(native)


def _fill(file: RawIOBase, room: memoryview) -> None:
    """Read until ``room`` is full."""
    done = 0
    while done < len(room):
        count = file.readinto(room[done:])
        if not count:
            raise ConfigError("picks", f"{done:,} bytes", "end before the array does", "write the file again")
        done += count


def read_header(path: Readable) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """(shape, whether in Fortran order, dtype, offset of the data) of a ``.npy`` file.

    Raises:
        ConfigError: for a file that is missing, no ``.npy``, or holds Python objects.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigError(
            "picks", str(path), f"cannot be read: {error}", "give a .npy of integers"
        ) from error
    with file:
        return *header_of(file, str(path)), file.tell()


def load_arrays(path: Readable) -> dict[str, NDArray[Any]]:
    """Arrays of a ``.npy`` (under the name ``picks``) or ``.npz`` file, whole in memory.

    Raises:
        ConfigError: for a file that cannot be read without unpickling, or that unpacks to too much.
    """
    try:
        with path.open("rb") as file:
            check_unpacked(path, file)
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"picks": loaded}
            return {name: loaded[name] for name in loaded.files}
    except ConfigError:
        raise
    except Exception as error:  # zipfile and the reader of headers raise kinds of their own
        raise ConfigError("picks", str(path), f"cannot be read: {error}", "give an .npy or .npz") from error

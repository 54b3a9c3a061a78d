"""Tensors in ``.pt`` and ``.pth`` files, read without PyTorch, and without running what the file says.

``torch.save`` writes a zip: ``data.pkl`` describes the value, and ``data/0``, ``data/1``, ... hold the bytes
of the tensors' storages (PyTorch ``torch/serialization.py``, since 1.6). The pickle names three kinds of
things: storages, ``torch._utils._rebuild_tensor_v2`` and ``collections.OrderedDict``. The reader knows those;
another name is refused, and nothing that a file names is ever called.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from math import prod
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tracer.batch.picks.npy import MAX_UNPACKED_BYTES
from tracer.batch.picks.safe_pickle import RefusedPickle, loads
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.picks.source import Readable

SUFFIXES = (".pt", ".pth")
MAX_MEMBERS = 1 << 16
MAX_AXES = 8
_OLD_START = bytes.fromhex("80028a0a6cfc9c46f920")
"""How every file of PyTorch's format before 1.6 begins: a pickled magic number."""
_REBUILD = "torch._utils._rebuild_tensor_v2"
_BFLOAT16 = "torch.BFloat16Storage"
_STORAGES = {
    "torch.LongStorage": "i8",
    "torch.IntStorage": "i4",
    "torch.ShortStorage": "i2",
    "torch.CharStorage": "i1",
    "torch.ByteStorage": "u1",
    "torch.BoolStorage": "?",
    "torch.DoubleStorage": "f8",
    "torch.FloatStorage": "f4",
    "torch.HalfStorage": "f2",
    _BFLOAT16: "u2",
}
_FIX = "save tensors in plain dicts and lists: torch.save({'logical_count': tensor}, path), or an .npy"


def load_torch(path: Readable, field: str = "picks") -> Any:
    """The value of a ``torch.save`` file: dicts, lists and numbers as they are, tensors as numpy arrays.

    Arrays are read-only views with the tensor's shape; BF16 becomes float32.

    Raises:
        ConfigError: for a file that cannot be read, names anything but tensors, or unpacks to too much.
    """
    try:
        with path.open("rb") as file:
            return _load(file)
    except RefusedPickle as error:
        raise ConfigError(field, str(path), f"is refused: {error}", _FIX) from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        rule = f"is not a file of torch.save: {error}"
        raise ConfigError(field, str(path), rule, "write it with torch.save, or give an .npy") from error


def _load(file: IO[bytes]) -> Any:
    start = file.read(len(_OLD_START))
    if start == _OLD_START:
        raise RefusedPickle("it is in PyTorch's format before 1.6, which is no zip; save it with a newer one")
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > MAX_UNPACKED_BYTES or len(members) > MAX_MEMBERS:
            raise RefusedPickle(
                f"it unpacks to {size:,} bytes in {len(members):,} parts; {MAX_UNPACKED_BYTES:,} bytes in "
                f"{MAX_MEMBERS:,} parts are read at once"
            )
        pickles = [m.filename for m in members if m.filename.rpartition("/")[2] == "data.pkl"]
        if len(pickles) != 1:
            raise RefusedPickle("it holds no data.pkl, which every file of torch.save has")
        tensors = _Tensors(archive, pickles[0].removesuffix("data.pkl"))
        return loads(archive.read(pickles[0]), tensors)


@dataclass(frozen=True, slots=True)
class _Named:
    """Stands for something that a file names."""

    name: str


class _Tensors:
    """The names that a file of tensors may use, and its storages, each read once."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        self._archive, self._folder = archive, folder
        self._names = frozenset(archive.namelist())
        self._read: dict[tuple[str, str], NDArray[Any]] = {}
        order = f"{folder}byteorder"
        self._order = ">" if order in self._names and archive.read(order).strip() == b"big" else "<"

    def named(self, name: str) -> object:
        """A marker for one of the known names."""
        if name in _STORAGES or name in (_REBUILD, "collections.OrderedDict"):
            return _Named(name)
        raise RefusedPickle(f"it names {name}, and only plain tensors are read")

    def called(self, function: object, arguments: object) -> object:
        """A tensor, or an empty dict for an ordered one (a tensor's hooks, or a dict of tensors)."""
        if function == _Named("collections.OrderedDict") and arguments == ():
            return {}
        if function == _Named(_REBUILD) and isinstance(arguments, tuple):
            return _view(*arguments[:4])
        raise RefusedPickle("it calls what is no tensor")

    def stored(self, key: object) -> object:
        """The elements of a storage: ``("storage", type, key, device, elements)``."""
        if not (isinstance(key, tuple) and len(key) == 5 and key[0] == "storage"):
            raise RefusedPickle("it asks for an outside object that is no storage")
        _, kind, name, _, count = key
        if not (isinstance(kind, _Named) and kind.name in _STORAGES and isinstance(name, str)):
            raise RefusedPickle("it holds a storage of an unknown type")
        member = f"{self._folder}data/{name}"
        if member not in self._names:
            raise RefusedPickle(f"its storage {name[:40]!r} is missing")
        found = self._read.get((name, kind.name))
        if found is None:
            found = self._elements(member, kind.name)
            self._read[name, kind.name] = found
        if type(count) is not int or count != len(found):
            raise RefusedPickle(f"its storage {name[:40]!r} is cut short")
        return found

    def _elements(self, member: str, kind: str) -> NDArray[Any]:
        data, dtype = self._archive.read(member), np.dtype(self._order + _STORAGES[kind])
        if len(data) % dtype.itemsize:
            raise RefusedPickle(f"its storage {member[-40:]!r} is cut short")
        found: NDArray[Any] = np.frombuffer(data, dtype)
        if kind == _BFLOAT16:  # the upper half of a float32
            return (found.astype(np.uint32) << 16).view(np.float32)
        return found


def _view(storage: object, offset: object, sizes: object, strides: object) -> NDArray[Any]:
    """A tensor over its storage, never beyond it."""
    shape, steps = _axes(sizes), _axes(strides)
    if not (isinstance(storage, np.ndarray) and type(offset) is int and offset >= 0):
        raise RefusedPickle("it rebuilds a tensor from what is no storage")
    if len(shape) != len(steps) or len(shape) > MAX_AXES:
        raise RefusedPickle(f"it holds a tensor of {len(shape)} sizes and {len(steps)} strides")
    count = prod(shape)
    if not count:
        return np.empty(shape, storage.dtype)
    last = offset + sum((size - 1) * step for size, step in zip(shape, steps, strict=True))
    if count > len(storage) or last >= len(storage):
        raise RefusedPickle(f"its tensor {list(shape)} is larger than the {len(storage):,} elements stored")
    item = storage.dtype.itemsize
    return np.lib.stride_tricks.as_strided(
        storage[offset:], shape, [step * item for step in steps], writeable=False
    )


def _axes(value: object) -> tuple[int, ...]:
    """Sizes or strides of a tensor: whole numbers of 0 or more."""
    if not (isinstance(value, tuple) and all(type(size) is int and size >= 0 for size in value)):
        raise RefusedPickle("it holds a tensor whose sizes are no whole numbers")
    return value

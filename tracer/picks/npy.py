"""Picks in ``.npy`` and ``.npz`` files, never unpickled; a large ``.npy`` is read in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.picks.source import Picks


@dataclass(frozen=True, slots=True)
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
        width = self.shape[2]
        offset = self.offset + (layer * self.shape[1] + start) * width * self.dtype.itemsize
        count = (stop - start) * width
        found: Picks = np.fromfile(self.path, self.dtype, count, offset=offset).reshape(stop - start, width)
        native = found.dtype.newbyteorder("=")
        return found if found.dtype == native else found.astype(native)


def read_header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """(shape, whether in Fortran order, dtype, offset of the data) of a ``.npy`` file.

    Raises:
        ConfigError: for a file that is missing, no ``.npy``, or holds Python objects.
    """
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _read_header_2_0
            shape, fortran, dtype = read(file)
            offset = file.tell()
    except (OSError, ValueError) as error:
        raise ConfigError(
            "picks", str(path), f"cannot be read: {error}", "give a .npy of integers"
        ) from error
    if dtype.hasobject:
        raise ConfigError("picks", str(path), "holds Python objects", "save an array of integers")
    return tuple(shape), fortran, dtype, offset


def _read_header_2_0(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    return shape, fortran, dtype


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a ``.npy`` (under the name ``picks``) or ``.npz`` file, whole in memory.

    Raises:
        ConfigError: for a file that cannot be read without unpickling.
    """
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"picks": loaded}
            return {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError) as error:
        raise ConfigError("picks", str(path), f"cannot be read: {error}", "give an .npy or .npz") from error
    except Exception as error:  # zipfile raises its own kinds
        raise ConfigError("picks", str(path), f"is not an .npz: {error}", "write it with np.savez") from error

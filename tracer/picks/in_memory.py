"""A file of picks that was sent, not stored: read like a path, and measured before it is unpacked."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, field
from io import BytesIO
from math import prod
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from typing import IO

MAX_UNPACKED_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class InMemory:
    """Bytes under the name of the file they came from; ``name`` decides how they are read."""

    name: str
    data: bytes = field(repr=False)

    @property
    def suffix(self) -> str:
        """Ending of the name, in small letters."""
        return PurePosixPath(self.name.lower()).suffix

    def open(self, mode: Literal["rb"] = "rb") -> BytesIO:
        """The bytes as a file."""
        return BytesIO(self.data)

    def __str__(self) -> str:
        return self.name


Readable = Path | InMemory
"""What the readers of picks take."""


def check_unpacked(sent: InMemory) -> None:
    """Refuse an ``.npy`` or ``.npz`` that says it is larger than its bytes, or unpacks to too much.

    Raises:
        ConfigError: naming the array.
    """
    if sent.suffix == ".npz":
        _check_archive(sent)
    elif sent.suffix == ".npy":
        _check_array(sent.name, sent.open(), len(sent.data))


def _check_archive(sent: InMemory) -> None:
    try:
        with zipfile.ZipFile(sent.open()) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if total > MAX_UNPACKED_BYTES:
                rule = f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes"
                raise ConfigError("picks", sent.name, rule, "send fewer tokens")
            for member in members:
                with archive.open(member) as file:
                    _check_array(member.filename, file, member.file_size)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        rule = f"is not an .npz: {error}"
        raise ConfigError("picks", sent.name, rule, "write it with np.savez") from error


def _check_array(name: str, file: IO[bytes], size: int) -> None:
    """The header of an array must fit into the bytes that hold it."""
    from tracer.picks.npy import header_of

    shape, _, dtype = header_of(file, name)
    if prod(shape) * dtype.itemsize > size:
        rule = f"says it holds {list(shape)} of {dtype}, more than its {size:,} bytes"
        raise ConfigError("picks", name, rule, "write it again")

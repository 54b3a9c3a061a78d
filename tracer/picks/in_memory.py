"""A file of picks that was sent, not stored, read like a path."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Literal


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

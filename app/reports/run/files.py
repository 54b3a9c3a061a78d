"""Recordings that a reader sends to the page, unpacked for one question and forgotten.

What is sent is one body: a line of JSON that lists names and sizes, then the files one after another, each
perhaps gzipped. They are written to a temporary folder, which is removed with the answer.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tracer.errors import ConfigError

MAX_BYTES = 16 << 20
"""The most that is sent: dumps shrink to a tenth when the browser packs them."""
MAX_UNPACKED = 192 << 20
MAX_FILES = 4096
FIX = "send fewer files, or read them where they lie with `tokentrip run FILES`"
_GZIP = b"\x1f\x8b"
_UNSAFE = re.compile(r"[^\w.\-]+")


@contextmanager
def sent_files(body: bytes) -> Iterator[list[Path]]:
    """The files of a body in a folder that is gone afterwards.

    Raises:
        ConfigError: when the body is too large, or is not what the page sends.
    """
    if len(body) > MAX_BYTES:
        raise ConfigError("files", f"{len(body):,} bytes", f"are over {MAX_BYTES:,} bytes", FIX)
    head, _, rest = body.partition(b"\n")
    try:
        listed = [(str(name), int(size)) for name, size in json.loads(head)["files"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        rule = "must begin with a line of JSON that lists the files"
        raise ConfigError("files", "the body", rule, "send them from the page Run") from error
    if not 0 < len(listed) <= MAX_FILES:
        raise ConfigError("files", len(listed), f"must be 1 to {MAX_FILES:,} files", FIX)
    if any(size < 0 for _, size in listed) or sum(size for _, size in listed) != len(rest):
        raise ConfigError(
            "files", f"{len(rest):,} bytes", "are not as many as the list says", "send them again"
        )
    with TemporaryDirectory(prefix="tokentrip-run-") as folder:
        yield _written(Path(folder), listed, rest)


def _written(folder: Path, listed: list[tuple[str, int]], data: bytes) -> list[Path]:
    """Each file in a folder of its own, because two folders may hold the same names."""
    found: list[Path] = []
    place, left = 0, MAX_UNPACKED
    for number, (name, size) in enumerate(listed):
        content = data[place : place + size]
        place += size
        path = folder / str(number) / (_UNSAFE.sub("_", name.rsplit("/", 1)[-1]).lstrip(".")[-120:] or "file")
        path.parent.mkdir()
        plain = _unpacked(content, left)
        left -= len(plain)
        path.write_bytes(plain)
        found.append(path)
    return found


def _unpacked(content: bytes, most: int) -> bytes:
    """A file without its packing; one that is packed wrongly stays as it is, and is refused by name later.

    Raises:
        ConfigError: when all files together would grow beyond what is read.
    """
    if content[:2] != _GZIP:
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            plain = packed.read(most + 1)
    except (OSError, EOFError, zlib.error):
        return content
    if len(plain) > most:
        raise ConfigError("files", "unpacked", f"are over {MAX_UNPACKED:,} bytes", FIX)
    return plain


def without_folders(text: str, paths: list[Path]) -> str:
    """A text about files with their names alone: where they lay for a moment tells nothing."""
    for folder in {str(path.parent) for path in paths}:
        text = text.replace(folder + "/", "")
    return text

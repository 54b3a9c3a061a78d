"""Recordings that are part of the package, for the page Run and the lesson about it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from tracer.errors import ConfigError

SHIPPED = {"megatron-a": "a Megatron job of 16 GPUs that hung"}


@contextmanager
def shipped_files(name: str) -> Iterator[list[Path]]:
    """The files of a recording that is part of the package.

    Raises:
        ConfigError: for a name that is none of ``SHIPPED``.
    """
    if name not in SHIPPED:
        raise ConfigError("recording", name, "is no recording that ships here", f"try {', '.join(SHIPPED)}")
    with TemporaryDirectory(prefix="tokentrip-run-") as folder:
        data = files("tracer").joinpath("data", "runs", f"{name}.zip").read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            packed.extractall(folder)
        yield sorted(Path(folder).iterdir())

"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tracer.errors import ConfigError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write beside the target and rename over it, so that a failure leaves the old file as it was.

    Raises:
        ConfigError: when the folder is missing, not writable, or full.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # a disk may say only now that it is full
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise _unwritable(path, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError | ValueError) -> ConfigError:
    """The error in the words of what was asked: the name of a temporary file is nobody's business."""
    folder, fix = path.parent, "pick another place"
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, FileNotFoundError):
        why, fix = f"there is no folder {folder}", f"make it first: mkdir -p {folder}"
    elif isinstance(error, NotADirectoryError):
        why = f"{folder} is no folder"
    return ConfigError("--to", str(path), f"cannot be written: {why}", fix)

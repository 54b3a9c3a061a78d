"""CPython compiled to WebAssembly, from pyodide's npm package: fetched when a site is built."""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tracer.errors import ConfigError

VERSION = "314.0.7"
INTEGRITY = "sha512-0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
"""Of the package as the npm registry states it."""
FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runtime's files by name; ``version`` is that of the package."""

    version: str
    files: dict[str, bytes]


def find_runtime(given: Path | None, cache: Path) -> Runtime:
    """The pinned runtime: from a package or a folder that is given, from the cache, or by npm.

    Raises:
        ConfigError: when the package is not the pinned one, or npm is missing or fails.
    """
    if given is not None:
        return _from_folder(given) if given.is_dir() else _from_package(given, "--runtime")
    archive = cache / f"pyodide-{VERSION}.tgz"
    if not archive.is_file():
        _pack(archive)
    try:
        return _from_package(archive, "runtime")
    except ConfigError:
        archive.unlink(missing_ok=True)  # a download that broke off must not stand in the way of the next
        raise


def _pack(archive: Path) -> None:
    npm = shutil.which("npm")
    fix = "give the package by --runtime: npm pack pyodide@" + VERSION
    if npm is None:
        raise ConfigError("--runtime", None, "is needed where there is no npm", fix)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        command = [npm, "pack", "--silent", "--pack-destination", folder, f"pyodide@{VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        found = list(Path(folder).glob("*.tgz"))
        if done.returncode or len(found) != 1:
            said = (done.stderr or done.stdout).strip().splitlines()
            why = said[-1][:200] if said else f"exit code {done.returncode}"
            raise ConfigError("--runtime", None, f"is needed: npm could not fetch pyodide ({why})", fix)
        found[0].replace(archive)


def _from_package(path: Path, field: str) -> Runtime:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(field, str(path), f"cannot be read: {error.strerror}", "check the path") from error
    found = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode("ascii")
    if found != INTEGRITY:
        rule = f"is not the package pyodide {VERSION} that this version is built with"
        raise ConfigError(field, str(path), rule, f"take npm's: npm pack pyodide@{VERSION}")
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for name in FILES:
            member = archive.extractfile(f"package/{name}")
            assert member is not None  # the integrity holds, so the file is there
            files[name] = member.read(MOST_BYTES)
    return Runtime(VERSION, files)


def _from_folder(folder: Path) -> Runtime:
    """An unpacked package: its own statement of its version must be the pinned one."""
    import json

    try:
        version = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
        files = {name: (folder / name).read_bytes() for name in FILES}
    except (OSError, ValueError, KeyError) as error:
        rule = "does not hold an unpacked pyodide package"
        raise ConfigError(
            "--runtime", str(folder), rule, f"unpack npm's: npm pack pyodide@{VERSION}"
        ) from error
    if version != VERSION:
        rule = f"holds pyodide {version}, and this version is built with {VERSION}"
        raise ConfigError("--runtime", str(folder), rule, f"take npm pack pyodide@{VERSION}")
    return Runtime(VERSION, files)

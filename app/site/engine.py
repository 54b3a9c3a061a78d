"""The engine as an archive for the tab: modules that answer questions, their data, two small libraries."""

from __future__ import annotations

import ast
import io
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from app.site.runtime import Runtime

ROOT = Path(str(files("tracer"))).parent
LEFT_OUT = (
    "app/assets/", "app/cli", "app/commands/", "app/markdown", "app/server", "app/site/", "app/sphinx",
    "app/standalone/", "app/vendor/", "app/web/base_path", "app/web/bundle", "app/web/embed",
    "app/web/flask_api", "app/web/jobs", "app/web/security", "layouts/svg/fonts/",
    "tracer/data/schemas/", "app/reports/batch/", "tracer/batch/", "tracer/proof/replay/",
)  # fmt: skip
"""What only a server, a command line or numpy needs."""
KEPT = (
    "app/site/__init__.py", "app/site/tab.py", "tracer/batch/__init__.py", "tracer/batch/grouped_gemm.py",
    "tracer/batch/picks/__init__.py", "tracer/batch/picks/safe_pickle.py",
)  # fmt: skip
PLAYER = ("app/assets/", "app/standalone/")
"""The scripts and styles that an exported page holds."""
LIBRARIES = {"tomli_w": "tomli-w", "yaml": "PyYAML"}
"""Pure Python, by the name of the module and of the distribution; each goes with its licence."""
TIME = (1980, 1, 1, 0, 0, 0)
ALWAYS = (
    "encodings.ascii", "encodings.latin_1", "encodings.utf_8_sig", "encodings.idna", "encodings.cp437",
    "traceback", "linecache", "tokenize", "locale", "bisect", "heapq", "html", "zipfile",
)  # fmt: skip
"""Of the standard library, beside what the engine's own imports name: modules that others import late."""


def engine_files() -> dict[str, bytes]:
    """The archive's files by name, as sources."""
    found = {
        name: path.read_bytes()
        for package in ("tracer", "layouts", "app")
        for path in sorted((ROOT / package).rglob("*"))
        if path.is_file() and _belongs(name := path.relative_to(ROOT).as_posix())
    }
    for module, name in LIBRARIES.items():
        found |= _library(module, name)
    return found


def _belongs(name: str) -> bool:
    if "__pycache__" in name or name.endswith((".pyc", ".typed")):
        return False
    if name.startswith(PLAYER):
        return name.endswith((".js", ".css"))
    return name in KEPT or not name.startswith(LEFT_OUT)


def _library(module: str, name: str) -> dict[str, bytes]:
    """The Python files of an installed library, and its licence."""
    try:
        listed = distribution(name).files or []
    except ModuleNotFoundError as error:
        fix = "install it: pip install 'tokentrip[frameworks]'"
        raise ConfigError("site", module, "is part of the archive and not installed", fix) from error
    found = {}
    for each in listed:
        path = each.as_posix()
        if path.startswith(f"{module}/") and path.endswith(".py"):
            found[path] = Path(str(each.locate())).read_bytes()
        elif "LICENSE" in path.upper():
            found[f"{module}/LICENSE"] = Path(str(each.locate())).read_bytes()
    return found


def imported_names(sources: dict[str, bytes]) -> list[str]:
    """Every module that the sources import by its full name, at the top or inside a function."""
    found = set(ALWAYS)
    for name, text in sources.items():
        if name.endswith(".py"):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Import):
                    found |= {each.name for each in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    # What is taken from a package may be one of its modules.
                    found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    own = {name.partition("/")[0] for name in sources}
    return sorted(each for each in found if each.partition(".")[0] not in own)


def stored_zip(contents: dict[str, bytes]) -> bytes:
    """A zip without compression (the whole of it is compressed better), the same for the same contents."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(contents):
            archive.writestr(zipfile.ZipInfo(name, TIME), contents[name])
    return out.getvalue()


def compiled(runtime: Runtime, sources: dict[str, bytes]) -> tuple[bytes, bytes]:
    """(engine, standard library) as zips of bytecode, made by the runtime itself under Node.js.

    Of the standard library only what the engine reaches is kept. Where there is no Node.js, sources go in,
    which open more slowly and answer the same.

    Raises:
        ConfigError: when the runtime fails.
    """
    node = shutil.which("node")
    if node is None:
        print("no Node.js: the site gets sources, which start more slowly", file=sys.stderr)
        return stored_zip(sources), runtime.files["python_stdlib.zip"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in runtime.files.items():
            (folder / file).write_bytes(content)
        (folder / "engine.zip").write_bytes(stored_zip(sources))
        (folder / "names.txt").write_text("\n".join(imported_names(sources)), encoding="utf-8")
        script = folder / "compile.mjs"
        script.write_text((files("app.site") / "assets" / "compile.mjs").read_text(encoding="utf-8"))
        done = subprocess.run([node, str(script), str(folder)], capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["no word"]
            faults = [line for line in said if re.match(r"(\w+\.)*\w*Error\b", line)]
            why = (faults or said)[-1][:300]
            raise ConfigError("site", "node", f"could not compile the engine: {why}", "report it")
        return (folder / "engine.out.zip").read_bytes(), (folder / "stdlib.out.zip").read_bytes()

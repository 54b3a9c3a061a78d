"""Launch flags of real frameworks to a mesh: their groups, ours, expert placement, warnings, refusals.

``flags`` and ``parsing`` turn words into settings; ``launch`` finds the launches in whatever was pasted,
and ``config_files`` reads a framework's own file. Each framework is a folder of the same files: ``flags``
(its table), ``checks`` (what it refuses), ``mesh`` (the groups it makes) and ``other_flags.txt`` (flags
that shape nothing, or are not modelled); one teaches all. ``settings`` has what they return, ``opening``
makes a ``Layout`` of it, and ``compare`` says where two launches part.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.frameworks.compare import GroupComparison, diff
    from tracer.frameworks.launch.door import read_launch
    from tracer.frameworks.layout import Layout
    from tracer.frameworks.notes import Note
    from tracer.frameworks.opening import from_flags, from_line, meshes_of
    from tracer.frameworks.registry import FRAMEWORKS, framework_name

_HOMES = {
    "GroupComparison": "compare",
    "FRAMEWORKS": "registry",
    "Layout": "layout",
    "Note": "notes",
    "diff": "compare",
    "framework_name": "registry",
    "from_flags": "opening",
    "from_line": "opening",
    "meshes_of": "opening",
    "read_launch": "launch.door",
}

__all__ = [
    "FRAMEWORKS",
    "GroupComparison",
    "Layout",
    "Note",
    "diff",
    "framework_name",
    "from_flags",
    "from_line",
    "meshes_of",
    "read_launch",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"tracer.frameworks.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

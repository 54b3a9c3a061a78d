"""The import graph of the packages: circles, arrows between rooms, floors. Exits 1 when a rule breaks.

Every import counts, those under ``TYPE_CHECKING`` and inside functions too. A room of ``tracer`` is an entry
at its top; a room of ``layouts`` or ``app`` likewise. Run it as ``python scripts/import_graph.py [--list]``.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

PACKAGES = ("tracer", "layouts", "app")
ORDER = (
    ("data",),
    ("errors",),
    ("display",),
    ("mesh",),
    ("model",),
    ("scenario",),
    ("frameworks",),
    ("memory",),
    ("trip",),
    ("traffic",),
    ("batch",),
    ("timing",),
    ("serving",),
    ("runs",),
    ("proof",),
)
"""Rooms of ``tracer`` from the ground up; a room imports from floors below its own alone."""

Graph = dict[str, set[str]]


def module_name(path: Path, root: Path) -> str:
    """The dotted name of a file: ``tracer/mesh/mesh.py`` is ``tracer.mesh.mesh``."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.AST, modules: Iterable[str]) -> set[str]:
    """Modules of ours that a file imports anywhere; ``from package import module`` counts as the module."""
    known, found = set(modules), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & known) or {node.module}
    return found & known


def read_graph(root: Path) -> Graph:
    """Each module's imports among our packages; a facade that only hands names on is left out."""
    files = {
        module_name(path, root): path
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    }
    graph = {
        name: imports_of(ast.parse(path.read_text(encoding="utf-8")), files) for name, path in files.items()
    }
    facades = {name for name, path in files.items() if name == "tracer" or _hands_on(path)}
    return {name: targets - {name} for name, targets in graph.items() if name not in facades}


def _hands_on(path: Path) -> bool:
    """Whether a package's ``__init__`` only looks names up for its reader, as ``tracer.frameworks`` does."""
    return path.name == "__init__.py" and "def __getattr__" in path.read_text(encoding="utf-8")


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected parts of two modules or more, each sorted: Tarjan's algorithm, no recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in graph:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                    if len(part) > 1:
                        found.append(sorted(part))
    return found


def room_of(module: str) -> str:
    """The room of a module: package and the entry at its top."""
    return ".".join(module.split(".")[:2])


def room_graph(graph: Mapping[str, set[str]]) -> Graph:
    """Imports between rooms; those inside a room are left out."""
    rooms: Graph = {}
    for module, targets in graph.items():
        here = rooms.setdefault(room_of(module), set())
        here |= {room_of(target) for target in targets} - {room_of(module)}
    return rooms


def arrows_up(graph: Mapping[str, set[str]]) -> list[str]:
    """Imports of ``tracer`` that go to a room on the same floor or above, as ``from -> to``."""
    floor = {f"tracer.{room}": number for number, rooms in enumerate(ORDER) for room in rooms}
    found = []
    for module, targets in graph.items():
        here = room_of(module)
        for target in sorted(targets):
            there = room_of(target)
            if here in floor and there in floor and here != there and floor[there] >= floor[here]:
                found.append(f"{module} -> {target}")
    return found


def floors(graph: Mapping[str, set[str]]) -> int:
    """Length of the longest chain of imports between rooms; rooms in a circle share a floor."""
    parts = circles(graph)
    part_of = {node: part[0] for part in parts for node in part}
    merged: Graph = {}
    for node, targets in graph.items():
        here = part_of.get(node, node)
        merged.setdefault(here, set()).update(part_of.get(target, target) for target in targets)
    height: dict[str, int] = {}

    def tall(node: str) -> int:
        if node not in height:
            height[node] = 1 + max((tall(t) for t in merged.get(node, ()) if t != node), default=0)
        return height[node]

    return max(tall(node) for node in merged)


def main(arguments: list[str] | None = None) -> int:
    """Print the figures, then what breaks the house rules; 1 when something does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--list", action="store_true", help="print every arrow between rooms")
    options = parser.parse_args(arguments)
    graph = read_graph(options.root)
    rooms = room_graph(graph)
    files = [path for package in PACKAGES for path in (options.root / package).rglob("*.py")]
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in files]
    entries = [p for p in (options.root / "tracer").iterdir() if p.name not in ("__pycache__", "py.typed")]
    print(f"entries at the top of tracer  {len(entries)}")
    print(f"files                         {len(files)}")
    print(f"median lines of a file        {statistics.median(lines):g}")
    print(f"lines                         {sum(lines):,}")
    print(f"arrows between rooms          {sum(len(targets) for targets in rooms.values())}")
    print(f"floors of rooms               {floors(rooms)}")
    if options.list:
        for room in sorted(rooms):
            print(f"{room}: {', '.join(sorted(rooms[room])) or '-'}")
    faults = [f"circle: {' <-> '.join(part)}" for part in circles(graph)]
    faults += [f"circle of rooms: {' <-> '.join(part)}" for part in circles(rooms)]
    faults += [f"arrow back up: {arrow}" for arrow in arrows_up(graph)]
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

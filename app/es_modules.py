"""ES modules joined into one script: each becomes a function, so that none sees another's names.

A page then waits for one request instead of forty that wait for each other, and a page in a file holds the
same modules. Nothing but Python is needed for it. The price is one form of imports and exports::

    import { eyebrow, hopName as name } from "./words.js";
    import "./styles.js";
    export const LIMIT = 8;
    export function show(hop) {}

Each begins a line, and imports come before all other code. Anything else is refused with the file and line.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

APP = files("app")
NAME = r"[A-Za-z_$][\w$]*"
NAMES = rf"\{{\s*(?P<names>{NAME}(?:\s+as\s+{NAME})?(?:\s*,\s*{NAME}(?:\s+as\s+{NAME})?)*)\s*,?\s*\}}"
IMPORT = re.compile(rf'^import (?:{NAMES} from )?"(?P<path>\.\.?/[\w./-]+\.js)";$', re.MULTILINE)
EXPORT = re.compile(rf"^export (?=(?:const|class|(?:async )?function\*?) (?P<name>{NAME})\b)", re.MULTILINE)
UNREAD = re.compile(r"^\s*(?:import|export)\b(?!\s*:)|\bimport\s*[(.]", re.MULTILINE)
COMMENT = re.compile(r"\s*(?://[^\n]*\n|/\*.*?\*/|\n)", re.DOTALL)


class ModuleError(ValueError):
    """A module that cannot be joined with the others: where, and why."""


@dataclass(frozen=True, slots=True)
class Import:
    """One import: the module's path, and what it gives as (its name there, its name here)."""

    path: str
    names: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Module:
    """A module as it was read: ``body`` is its text without imports and without the word ``export``."""

    path: str
    imports: tuple[Import, ...]
    exports: tuple[str, ...]
    body: str


def parse_module(path: str, text: str) -> Module:
    """Read a module's imports and exports; ``path`` is where it lies below the folder of all of them.

    Raises:
        ModuleError: when an import or export has another form than the one that is read.
    """
    imports, start = [], 0
    for found in IMPORT.finditer(text):
        if COMMENT.sub("", text[start : found.start()]).strip():
            _refuse(path, text, found.start(), "imports come before all other code")
        imports.append(Import(_resolve(path, text, found), _pairs(found["names"])))
        start = found.end()
    for number, line in enumerate(text.splitlines(), 1):
        if line.replace("\\`", "").count("`") % 2:
            raise ModuleError(f"{path}:{number}: a template in backticks must end on its line")
    # Imports leave their lines behind: a line of the body keeps its number.
    rest = IMPORT.sub(lambda found: "\n" * found.group().count("\n"), text)
    body = EXPORT.sub("", rest)
    if unread := UNREAD.search(body):
        rule = 'write import { a } from "./b.js" or export before const, class or function'
        _refuse(path, body, unread.end() - 1, rule)
    exports = tuple(found["name"] for found in EXPORT.finditer(rest))
    return Module(path, tuple(imports), exports, body.strip())


def _pairs(names: str | None) -> tuple[tuple[str, str], ...]:
    each = [re.split(r"\s+as\s+", name.strip()) for name in names.split(",")] if names else []
    return tuple((name[0], name[-1]) for name in each if name[0])


def _resolve(path: str, text: str, found: re.Match[str]) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), found["path"]))
    if target.startswith("../"):
        _refuse(path, text, found.start(), f"{found['path']} lies outside of the scripts' folder")
    return target


def _refuse(path: str, text: str, at: int, rule: str) -> NoReturn:
    number = text.count("\n", 0, at) + 1
    raise ModuleError(f"{path}:{number}: {rule}; got: {text.splitlines()[number - 1].strip()}")


def link(entry: str, root: Traversable = APP) -> str:
    """A module and all that it imports as one script, each module after those that it imports.

    Raises:
        ModuleError: for a module that is missing or cannot be read, a name that a module does not export,
            and modules that import each other in a circle.
    """
    modules = _load(entry, root)
    for module in modules.values():
        _check_names(module, modules)
    graph = {path: [each.path for each in module.imports] for path, module in modules.items()}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " imports ".join(reversed(error.args[1]))
        raise ModuleError(f"modules import each other in a circle: {circle}") from None
    place = {path: f"module{number}" for number, path in enumerate(order)}
    parts = [_as_function(modules[path], place) for path in order]
    return "\n".join(['(() => {\n"use strict";', *parts, "})();\n"])


def _load(entry: str, root: Traversable) -> dict[str, Module]:
    modules: dict[str, Module] = {}
    wanted = [(entry, "")]
    while wanted:
        path, importer = wanted.pop()
        if path in modules:
            continue
        source = root.joinpath(*path.split("/"))
        if not source.is_file():
            raise ModuleError(f"there is no {path}" + (f", which {importer} imports" if importer else ""))
        modules[path] = parse_module(path, source.read_text(encoding="utf-8"))
        wanted += [(each.path, path) for each in modules[path].imports]
    return modules


def _check_names(module: Module, modules: dict[str, Module]) -> None:
    for each in module.imports:
        for name, _ in each.names:
            if name not in modules[each.path].exports:
                raise ModuleError(f"{module.path} imports {name}, which {each.path} does not export")


def _as_function(module: Module, place: dict[str, str]) -> str:
    """Imports become parameters, so a module sees its own names and what it asked for, and nothing else."""
    taken = [each for each in module.imports if each.names]
    parameters = ", ".join(_pattern(each.names) for each in taken)
    arguments = ", ".join(place[each.path] for each in taken)
    given = f"\nreturn {{ {', '.join(module.exports)} }};" if module.exports else ""
    head = f"// {module.path}\nconst {place[module.path]} = (({parameters}) => {{"
    return f"{head}\n{module.body}{given}\n}})({arguments});"


def _pattern(names: tuple[tuple[str, str], ...]) -> str:
    return "{ " + ", ".join(name if name == here else f"{name}: {here}" for name, here in names) + " }"


@cache
def explorer_script() -> str:
    """All pages of the explorer."""
    return link("assets/explorer.js")


@cache
def player_script() -> str:
    """The player of a trip in a file."""
    return link("standalone/player_page.js")

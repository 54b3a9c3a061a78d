"""All settings of one launch: its flags and its files, what is passed over, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.frameworks.config_files import settings_from
from tracer.frameworks.launch.result import Process
from tracer.frameworks.notes import Note
from tracer.frameworks.parsing import FlagTable, Parsed, parse
from tracer.frameworks.unread import unread_error

if TYPE_CHECKING:
    from tracer.frameworks.settings import Framework


def gathered(
    process: Process,
    table: FlagTable,
    known: Framework,
    file: Mapping[str, object] | None,
    strict: bool,
) -> Parsed:
    """Settings of the file and the flags together; what is known to shape nothing is dropped.

    Raises:
        ConfigError: where nothing that was read shapes a mesh and a file or a variable decides; and with
            ``strict`` for a flag that is unknown or not modelled.
    """
    parsed = parse(process.words, table)
    read_file = file is not None or process.tables is not None
    for tables in (process.tables, file):
        if tables is not None:
            _merge_file(parsed, tables, table, known)
    flags = table.by_dest()
    shaping = [dest for dest in parsed.values if flags[dest].shapes]
    if read_file and not shaping:
        raise _no_shaping_key(process, known)
    if not read_file or process.config:
        _check_config(process, parsed, shaping, known, table)
    _check_strays(process, parsed, shaping, known)
    _sort_unknown(parsed, known)
    if strict:
        _check_strict(parsed, known, table)
    return parsed


def _no_shaping_key(process: Process, known: Framework) -> ConfigError:
    keys = ", ".join(map(str, list(process.tables or ())[:4])) or "none"
    names = ", ".join(flag.dest for flag in known.flags if flag.shapes)[:100]
    return ConfigError(
        "file",
        f"keys {keys}",
        f"are read as {known.title}'s, and none of them shapes a mesh",
        f"give the sizes as flags after --, or the file that has them ({names}, ...)",
    )


def _check_config(
    process: Process, parsed: Parsed, shaping: list[str], known: Framework, table: FlagTable
) -> None:
    """A configuration file that is named and not here: refused where it decides the sizes, else said."""
    registry = _registry_entry(process) if known.name == "torchtitan" else None
    path = process.config or registry or ""
    if known.name == "torchtitan" and not path:
        path = process.env.get("CONFIG_FILE", "")
    if not path and "config_file" not in parsed.values:
        return
    path = path or str(parsed.values["config_file"])
    config_flag = table.by_dest().get("config_file")
    name = "CONFIG" if registry else config_flag.name if config_flag is not None else "file"
    if known.config_decides and not shaping:
        kind = (
            "is an entry of torchtitan's registry of configurations, which is Python: it sets the sizes"
            if registry
            else "names a file that sets the sizes, and it is not here"
        )
        fix = (
            "give the sizes as flags, such as --parallelism.tensor_parallel_degree 8"
            if registry
            else "give it as --file, beside the flags"
        )
        raise ConfigError(name, path, f"{kind} (recognised: {known.title})", fix)
    parsed.notes.append(
        Note(
            "config_file_not_read",
            f"{name} names {path}, which may set sizes too; it was not opened",
            "give it as --file, beside the flags",
        )
    )


def _registry_entry(process: Process) -> str | None:
    """The ``CONFIG=llama3_70b`` or ``--config llama3_70b`` of torchtitan: a function of its registry."""
    words = process.words
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--config":
            return value if equals else words[place + 1] if place + 1 < len(words) else ""
    return process.env.get("CONFIG")


def _check_strays(process: Process, parsed: Parsed, shaping: list[str], known: Framework) -> None:
    """Words of a variable that nothing sets may be flags: asked for where they may shape the mesh."""
    strays = [word for word in parsed.strays if word not in process.words[:2] or not known.names_model]
    for word in strays:
        if not shaping or any("PARALLEL" in name.upper() for name in word.missing):
            error = unread_error("line", word)
            raise ConfigError(
                error.field, error.got, f"{error.rule}, and it may hold the flags of the mesh", error.fix
            )
    if strays:
        shown = ", ".join(dict.fromkeys(map(str, strays[:6])))
        parsed.notes.append(
            Note(
                "unset_words",
                f"nothing in these lines sets {shown}: taken as empty",
                "add --set NAME='...' if it holds flags",
            )
        )


def _sort_unknown(parsed: Parsed, known: Framework) -> None:
    """Drop flags that shape nothing, and say what a trip lacks for those that are not modelled."""
    lacking: dict[str, list[str]] = {}
    for flag in known.flags:
        value = parsed.values.get(flag.dest)
        if flag.lacks and value not in (None, flag.default, "none"):
            shown = flag.name if value is True else f"{flag.name} {value}"
            lacking.setdefault(flag.lacks, []).append(shown)
    left: list[str] = []
    for name in parsed.unknown:
        lacks = known.others.lacks(name)
        if lacks and name not in parsed.off:
            lacking.setdefault(lacks, []).append(name)
        elif lacks:
            continue
        elif not known.others.passes_over(name):
            left.append(name)
    for lacks, names in lacking.items():
        are = "is" if len(names) == 1 else "are"
        message = f"{', '.join(names[:8])} {are} not modelled: the trip lacks {lacks}"
        parsed.notes.append(Note("not_modelled", message, "the groups hold; --strict refuses it"))
    parsed.unknown[:] = left


def check_strict(notes: Iterable[Note]) -> None:
    """Refuse the first flag that is not modelled.

    Raises:
        ConfigError: naming the flag, and what the trip lacks.
    """
    unmodelled = next((note for note in notes if note.code == "not_modelled"), None)
    if unmodelled is not None:
        names, _, lacks = unmodelled.message.partition(" not modelled: ")
        name = names.split(",")[0].split()[0]
        raise ConfigError(name, None, f"is not modelled: {lacks}", "drop it, or drop --strict")


def _check_strict(parsed: Parsed, known: Framework, table: FlagTable) -> None:
    check_strict(parsed.notes)
    if parsed.unknown:
        unknown = parsed.unknown[0]
        near = table.nearest(unknown)
        fix = f"did you mean {near}?" if near else "drop it, or drop --strict"
        raise ConfigError(unknown, None, f"is not a flag of {known.title} that is known here", fix)


def _merge_file(parsed: Parsed, file: Mapping[str, object], table: FlagTable, known: Framework) -> None:
    """Add a configuration file's settings; flags override them unless the framework says otherwise."""
    found = settings_from(file, table)
    if known.file_wins:
        for dest in found.values.keys() & parsed.values.keys():
            if found.values[dest] != parsed.values[dest]:
                name = table.by_dest()[dest].name
                parsed.notes.append(_overridden(name, found.values[dest], known.title))
    parsed.values = parsed.values | found.values if known.file_wins else found.values | parsed.values
    parsed.unknown.extend(found.unknown)
    parsed.off |= found.off


def _overridden(name: str, value: object, title: str) -> Note:
    return Note(
        "file_overrides_flag",
        f"the file sets {name} to {value}, and in {title} the file wins over the flag",
        f"change the file, or drop {name}",
    )

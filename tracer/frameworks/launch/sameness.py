"""Whether two processes make the same mesh, and the ways that a branch leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.errors import ConfigError
from tracer.frameworks.config_files import settings_from
from tracer.frameworks.launch.expansion import Undecided
from tracer.frameworks.launch.result import Process
from tracer.frameworks.line_model import model_name
from tracer.frameworks.parsing import FlagTable, parse
from tracer.frameworks.registry import framework
from tracer.frameworks.settings import Settings
from tracer.frameworks.unread import Unread

MAX_WAYS = 100
MAX_DEPTH = 8
_NODE_SPECIFIC = frozenset({"headless", "api_server_count"})


def ways_of(words: Sequence[str], depth: int = 0) -> list[list[str]]:
    """The words with each undecided one taken as its first option; then one at a time as another.

    Raises:
        ConfigError: above ``MAX_WAYS``, and for branches deeper than ``MAX_DEPTH``.
    """
    parts = [_options(word, depth) if isinstance(word, Undecided) else [[word]] for word in words]
    found = [[word for part in parts for word in part[0]]]
    for place, part in enumerate(parts):
        for option in part[1:]:
            if len(found) >= MAX_WAYS:
                raise ConfigError(
                    "line",
                    str(words[place]),
                    f"is decided by branches in more than {MAX_WAYS} ways",
                    "give the line with the branches taken",
                )
            before = [word for other in parts[:place] for word in other[0]]
            after = [word for other in parts[place + 1 :] for word in other[0]]
            found.append([*before, *option, *after])
    return found


def _options(word: Undecided, depth: int) -> list[list[str]]:
    if depth > MAX_DEPTH:
        raise ConfigError(
            "line",
            str(word),
            f"is decided by branches over {MAX_DEPTH} deep",
            "give the line with them taken",
        )
    return [way for option in word.options for way in ways_of(option, depth + 1)] or [[]]


def shaping_values(process: Process) -> dict[str, object]:
    """The settings of a process that shape its mesh, by the framework's own names.

    Raises:
        ConfigError: for a value of the wrong kind.
    """
    known = framework(process.framework)
    table = FlagTable(known.flags, known.dialect, known.others.names)
    values = dict(parse(process.words, table).values)
    if process.tables is not None:
        found = settings_from(process.tables, table).values
        values = {**values, **found} if known.file_wins else {**found, **values}
    flags = table.by_dest()
    return {
        dest: value for dest, value in values.items() if flags[dest].shapes and dest not in _NODE_SPECIFIC
    }


def difference(first: Process, second: Process, values: Mapping[str, object] | None = None) -> str:
    """What differs between two launches, as messages say it; empty where they make the same mesh.

    ``values`` are the :func:`shaping_values` of the first, where they are known already.
    """
    if first.framework != second.framework:
        return f"the framework ({first.framework}, {second.framework})"
    if first.counts.gpus != second.counts.gpus:
        return f"the number of GPUs ({first.counts.gpus}, {second.counts.gpus})"
    one = shaping_values(first) if values is None else values
    two = shaping_values(second)
    flags = {flag.dest: flag for flag in framework(first.framework).flags}
    for dest in dict.fromkeys([*one, *two]):
        if one.get(dest, flags[dest].default) != two.get(dest, flags[dest].default):
            shown = ["not given" if each.get(dest) is None else str(each[dest]) for each in (one, two)]
            return f"{flags[dest].name} ({' or '.join(shown)})"
    return ""


def other_model(first: Process, second: Process) -> bool:
    """Whether two launches name models, and not the same one."""
    one, two = _model_word(first), _model_word(second)
    return bool(one) and bool(two) and one != two


def _model_word(process: Process) -> str:
    """The model's name as a launch writes it; empty where a variable holds it, or none is named."""
    known = framework(process.framework)
    table = FlagTable(known.flags, known.dialect, known.others.names)
    parsed = parse(process.words, table)
    name = model_name(process, parsed, Settings(table.by_dest(), parsed.values), known)
    return "" if isinstance(name, Unread) else name

"""Whether two processes make the same mesh, and the ways that a branch leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.frameworks.config_files import settings_from
from tracer.frameworks.launch.expansion import Undecided
from tracer.frameworks.launch.result import Process
from tracer.frameworks.parsing import FlagTable, parse
from tracer.frameworks.registry import framework

MAX_WAYS = 64
_NODE_SPECIFIC = frozenset({"headless", "api_server_count"})


def ways_of(words: Sequence[str]) -> list[list[str]]:
    """The words with each undecided one taken as its first option; then one at a time as another."""
    undecided = [place for place, word in enumerate(words) if isinstance(word, Undecided)]
    found = [_taken(words, {})]
    for place in undecided:
        word = words[place]
        assert isinstance(word, Undecided)
        for number in range(1, len(word.options)):
            if len(found) < MAX_WAYS:
                found.append(_taken(words, {place: number}))
    return found


def _taken(words: Sequence[str], choices: Mapping[int, int], depth: int = 0) -> list[str]:
    found: list[str] = []
    for place, word in enumerate(words):
        if not isinstance(word, Undecided):
            found.append(word)
        elif depth < 8 and word.options:
            found += _taken(word.options[choices.get(place, 0)], {}, depth + 1)
    return found


def shaping_values(process: Process) -> dict[str, object]:
    """The settings of a process that shape its mesh, by the framework's own names.

    Raises:
        ConfigError: for a value of the wrong kind.
    """
    known = framework(process.framework)
    table = FlagTable(known.flags, known.dialect)
    values = dict(parse(process.words, table).values)
    if process.tables is not None:
        found = settings_from(process.tables, table).values
        values = {**values, **found} if known.file_wins else {**found, **values}
    flags = table.by_dest()
    return {
        dest: value for dest, value in values.items() if flags[dest].shapes and dest not in _NODE_SPECIFIC
    }


def difference(first: Process, second: Process) -> str:
    """What differs between two launches, as messages say it; empty where they make the same mesh."""
    if first.framework != second.framework:
        return f"the framework ({first.framework}, {second.framework})"
    if first.counts.gpus != second.counts.gpus:
        return f"the number of GPUs ({first.counts.gpus}, {second.counts.gpus})"
    one, two = shaping_values(first), shaping_values(second)
    flags = {flag.dest: flag for flag in framework(first.framework).flags}
    for dest in dict.fromkeys([*one, *two]):
        values = [each.get(dest, flags[dest].default) for each in (one, two)]
        if values[0] != values[1]:
            ways = " or ".join(
                "not given" if each.get(dest) is None else str(each[dest]) for each in (one, two)
            )
            return f"{flags[dest].name} ({ways})"
    return ""

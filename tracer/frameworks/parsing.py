"""Words of a command line to settings, by a framework's table of flags."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tracer.errors import ConfigError
from tracer.frameworks.flags import Dialect, Flag, Kind, convert
from tracer.frameworks.notes import Note
from tracer.frameworks.unread import Unread

MAX_VALUES = 5_000
SHORTEST_PREFIX = len("--pp")
_NEGATIVE_NUMBER = re.compile(r"-\d+(\.\d+)?$")


@dataclass(slots=True)
class Parsed:
    """What was read: values by dest, flags not in the table, and remarks.

    ``bare`` are words that are no flag and follow no flag that is not known; ``strays`` are those of them
    that a variable holds which nothing sets: they may be flags. ``off`` are unknown keys of a file whose
    value turns them off.
    """

    values: dict[str, object] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    strays: list[Unread] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    off: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class FlagTable:
    """A framework's flags, found by spelling; ``others`` are its flags that shape nothing."""

    flags: Sequence[Flag]
    dialect: Dialect
    others: Collection[str] = ()
    by_spelling: Mapping[str, Flag] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = {self.plain(spelling): flag for flag in self.flags for spelling in flag.spellings}
        object.__setattr__(self, "by_spelling", found)

    def plain(self, word: str) -> str:
        """A long flag with ``-`` for ``_`` where the framework's parser takes both."""
        return word.replace("_", "-") if self.dialect.underscores and word.startswith("--") else word

    def by_dest(self) -> dict[str, Flag]:
        """The flags by the framework's own names."""
        return {flag.dest: flag for flag in self.flags}

    def find(self, word: str) -> tuple[Flag, str] | None:
        """The flag a word spells and the spelling it stands for; None when there is none.

        Raises:
            ConfigError: for the beginning of a flag that shapes the mesh, where the framework's parser takes
                no abbreviations or another flag begins like it too.
        """
        spelling = self.plain(word)
        if spelling in self.by_spelling:
            return self.by_spelling[spelling], spelling
        if len(word) < SHORTEST_PREFIX or not word.startswith("--") or spelling in self.others:
            return None
        fits = [known for known in self.by_spelling if known.startswith(spelling)]
        if not fits:
            return None
        alike = [known for known in self.others if known.startswith(spelling)]
        if self.dialect.scripts_add_flags:
            return None
        if not self.dialect.abbreviations:
            raise ConfigError(
                word, None, "is not a flag, and abbreviations are not taken", f"write {fits[0]}"
            )
        if alike or len({self.by_spelling[known].dest for known in fits}) > 1:
            rule = f"is ambiguous: it could be {', '.join(sorted([*fits, *alike])[:6])}"
            raise ConfigError(word, None, rule, f"write {fits[0]} in full")
        return self.by_spelling[fits[0]], fits[0]

    def nearest(self, word: str) -> str | None:
        """A known flag that differs from a word only in ``-`` and ``_``, a stuck number, or few letters."""
        import difflib

        bare = word.split("=")[0]
        plain = {known.replace("_", "-"): known for known in self.by_spelling}
        stuck = re.sub(r"\d+$", "", bare)
        for candidate in (bare.replace("_", "-"), stuck):
            if candidate in plain and candidate != word:
                return plain[candidate]
        close = difflib.get_close_matches(bare[:80], list(plain), n=1, cutoff=0.85)
        return plain[close[0]] if close else None


def parse(words: Sequence[str], table: FlagTable) -> Parsed:
    """Settings from words; the last of a repeated flag counts, unknown flags are listed.

    Raises:
        ConfigError: for a flag without its value, or a value of the wrong kind.
    """
    parsed = Parsed()
    place, passed_over = 0, 0
    while place < len(words):
        word = words[place]
        place += 1
        if not word.startswith("-") or word in ("-", "--") or _NEGATIVE_NUMBER.match(word):
            # A word after a flag that is not known is most likely its value.
            if len(parsed.unknown) == passed_over:
                parsed.bare.append(word)
                parsed.strays += [word] if isinstance(word, Unread) else []
            passed_over = len(parsed.unknown)
            continue
        passed_over = len(parsed.unknown)
        place += _read_flag(word, words[place : place + MAX_VALUES], table, parsed)
    return parsed


def _read_flag(word: str, rest: Sequence[str], table: FlagTable, parsed: Parsed) -> int:
    """Read one flag; how many of the following words it took."""
    name, equals, attached = word.partition("=")
    value = (Unread(attached, word.missing) if isinstance(word, Unread) else attached) if equals else None
    found = table.find(name)
    if found is None and value is None and table.dialect.attached and not word.startswith("--"):
        found, value = table.find(word[:2]), word[2:] or None
        if found is not None and not found[0].takes_value:
            found = None
    if found is None:
        return _read_special(name, value, rest, table, parsed)
    flag, spelling = found
    if spelling != table.plain(name) and name.startswith("--"):
        parsed.notes.append(
            Note("abbreviated_flag", f"{name} was read as {spelling}", f"write {spelling} in full")
        )
    return _take(flag, name, value, rest, parsed)


def _take(flag: Flag, name: str, value: str | None, rest: Sequence[str], parsed: Parsed) -> int:
    """Store a flag's value; how many of the following words it took."""
    if flag.kind in (Kind.SWITCH, Kind.ON_OFF):
        taken = 0
        if value is None and flag.kind is Kind.ON_OFF and rest and rest[0].lower() in ("true", "false"):
            value, taken = rest[0], 1
        parsed.values[flag.dest] = True if value is None else convert(flag, value)
        return taken
    if flag.kind is Kind.FILE and value is None:
        value, taken = (rest[0], 1) if rest and not rest[0].startswith("-") else (None, 0)
        parsed.values[flag.dest] = value
        return taken
    if flag.kind is Kind.INTS and value is None:
        items = _until_flag(rest)
        _need_value(name, items)
        parsed.values[flag.dest] = convert(flag, [part for item in items for part in item.split(",") if part])
        return len(items)
    taken = 0
    if value is None:
        _need_value(name, rest)
        value, taken = rest[0], 1
        if value.startswith("--"):
            _need_value(name, ())
    stored: object = value.split(",") if flag.kind is Kind.INTS else value
    parsed.values[flag.dest] = convert(flag, stored)
    return taken


def _need_value(name: str, rest: Sequence[str]) -> None:
    if not rest:
        raise ConfigError(name, None, "needs a value", f"write {name} and its value")


def _until_flag(words: Sequence[str]) -> list[str]:
    items: list[str] = []
    for word in words:
        if word.startswith("-"):
            break
        items.append(word)
    return items


def _read_special(name: str, value: str | None, rest: Sequence[str], table: FlagTable, parsed: Parsed) -> int:
    """``--no-flag``, and a dotted key of a JSON flag (``--eplb-config.num_redundant_experts 32``)."""
    off = _switched_off(name, table)
    if off is not None and value is None:
        parsed.values[off.dest] = False
        return 0
    head, dot, key = name.partition(".")
    found = table.find(head) if dot else None
    if found is None or found[0].kind is not Kind.JSON:
        parsed.unknown.append(name)
        return 0
    taken = 0
    if value is None:
        _need_value(name, rest)
        value, taken = rest[0], 1
    before = parsed.values.get(found[0].dest)
    parsed.values[found[0].dest] = _with_key(
        before if isinstance(before, dict) else {}, key.split("."), value
    )
    return taken


def _switched_off(name: str, table: FlagTable) -> Flag | None:
    """The on-off flag that ``--no-flag`` or ``--section.no-flag`` turns off."""
    head, dot, last = name.removeprefix("--").rpartition(".")
    if not last.startswith(("no-", "no_")):
        return None
    found = table.find(f"--{head}{dot}{last[3:]}")
    return found[0] if found is not None and found[0].kind is Kind.ON_OFF else None


def _with_key(table: Mapping[str, object], path: Sequence[str], value: str) -> dict[str, object]:
    """The table with the value at a path of keys, read as JSON where it is JSON."""
    import json

    if len(path) > 1:
        inner = table.get(path[0])
        return {**table, path[0]: _with_key(inner if isinstance(inner, dict) else {}, path[1:], value)}
    try:
        read: object = json.loads(value)
    except (ValueError, RecursionError):
        read = value
    return {**table, path[0]: read}


def unknown_note(unknown: Iterable[str], table: FlagTable) -> Note | None:
    """One warning that counts the flags passed over, and names what they may have meant."""
    names = list(unknown)
    if not names:
        return None
    shown = []
    for name in names[:8]:
        near = table.nearest(name)
        shown.append(f"{name[:60]} (did you mean {near}?)" if near else name[:60])
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    count = "1 flag that does not shape" if len(names) == 1 else f"{len(names)} flags that do not shape"
    return Note(
        "unknown_flags",
        f"{count} the mesh, or unknown here, passed over: {', '.join(shown)}{more}",
        "add --strict to refuse them",
    )

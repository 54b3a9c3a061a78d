"""What one launch flag is: its spellings, the kind of its value, and its default."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tracer.errors import MAX_SIZE, ConfigError
from tracer.frameworks.unread import Unread, unread_error

MAX_ITEMS = 4096


class Kind(StrEnum):
    """How a flag takes its value."""

    INT = "int"
    INTS = "ints"
    TEXT = "text"
    JSON = "json"
    LISTS = "lists"
    SWITCH = "switch"
    ON_OFF = "on_off"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Flag:
    """One setting of a framework.

    ``dest`` is the framework's own name for it; ``spellings[0]`` is the flag that messages use. ``keys``
    are the dotted keys of the framework's configuration files, besides ``dest`` and the spellings.
    A FILE is named by the next word, or by none: ``--deepspeed`` alone is a switch. ``low`` bounds an INT
    (``high`` is 10^9); ``choices`` bounds a TEXT. A SWITCH takes no value; an
    ON_OFF takes none, ``--no-`` before it, or a true or false after it. ``shapes`` is False for a port, a
    node rank, a path: its value is never asked for where a variable holds it. ``of_model`` names the model or
    gives a size or a format of it: a value that a variable holds is kept as it stands, so that no model is
    made of it. ``lacks`` says what a trip lacks where the flag has another value than its default.
    """

    dest: str
    spellings: tuple[str, ...]
    kind: Kind = Kind.INT
    default: object = None
    low: int = 1
    choices: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    shapes: bool = True
    of_model: bool = False
    lacks: str = ""

    @property
    def name(self) -> str:
        """The spelling that messages use."""
        return self.spellings[0]

    @property
    def takes_value(self) -> bool:
        """Whether the next word is always the value."""
        return self.kind in (Kind.INT, Kind.TEXT, Kind.JSON, Kind.LISTS)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a framework's parser accepts besides the exact flag.

    ``abbreviations``: a prefix that fits one flag only (argparse); ``underscores``: ``_`` for ``-`` in
    long flags; ``attached``: ``-n2`` for a one-letter flag (argparse, click). ``scripts_add_flags`` is for a
    framework without a parser of its own: the flags are the user's script's, and others may begin alike.
    """

    abbreviations: bool = False
    underscores: bool = False
    attached: bool = True
    scripts_add_flags: bool = False


def model_flag(dest: str, *spellings: str, kind: Kind = Kind.TEXT, **more: Any) -> Flag:
    """A flag that names the model, or gives a size or a format of it."""
    return Flag(dest, spellings, kind, shapes=False, of_model=True, **more)


def convert(flag: Flag, value: object) -> object:
    """The value of a flag from text, or from a configuration file's value.

    Raises:
        ConfigError: naming the flag.
    """
    if value is None:
        return None
    if isinstance(value, Unread):
        return _unread(flag, value)
    if flag.kind is Kind.INT:
        return _whole(flag, value)
    if flag.kind is Kind.INTS:
        items = value if isinstance(value, list | tuple) else [value]
        if len(items) > MAX_ITEMS:
            raise ConfigError(flag.name, f"{len(items)} numbers", f"are more than {MAX_ITEMS}", "give fewer")
        return tuple(_whole(flag, item) for item in items)
    if flag.kind is Kind.JSON:
        return _table(flag, value)
    if flag.kind is Kind.LISTS:
        return _lists(flag, value)
    if flag.kind in (Kind.TEXT, Kind.FILE):
        return _word(flag, value)
    return _truth(flag, value)


def _unread(flag: Flag, value: Unread) -> object:
    """A value that a variable holds: asked for where it shapes the mesh, else one that always passes."""
    if flag.of_model:
        return value
    if flag.shapes:
        raise unread_error(flag.name, value)
    return flag.low if flag.kind is Kind.INT else str(value) if flag.kind is Kind.TEXT else None


def _whole(flag: Flag, value: object) -> int:
    number: object = value
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("$"):
            raise ConfigError(
                flag.name, value, "is a shell variable that these lines do not set", "write the number"
            )
        number = int(text) if len(text) <= 20 and text.lstrip("-+").isdecimal() and text.isascii() else text
    if isinstance(number, bool) or not isinstance(number, int) or not flag.low <= number <= MAX_SIZE:
        raise ConfigError(
            flag.name,
            value,
            f"must be a whole number from {flag.low} to {MAX_SIZE}",
            f"try {flag.name} {max(flag.low, 1)}",
        )
    return number


def _table(flag: Flag, value: object) -> dict[str, object]:
    import json

    table = value
    if isinstance(value, str):
        try:
            table = json.loads(value)
        except (ValueError, RecursionError):
            table = None
    if not isinstance(table, dict):
        raise ConfigError(flag.name, value, "must be a JSON object", f"try {flag.name} '{{}}'")
    return {str(key): item for key, item in table.items()}


def _lists(flag: Flag, value: object) -> tuple[tuple[str, ...], ...]:
    """A list of lists of words; Python's quotes are read as JSON's."""
    import json

    lists = value
    if isinstance(value, str):
        try:
            lists = json.loads(value.replace("'", '"'))
        except (ValueError, RecursionError):
            lists = None
    inner: list[Any] = lists if isinstance(lists, list) else [None]
    if not all(isinstance(each, list) and all(isinstance(word, str) for word in each) for each in inner):
        raise ConfigError(flag.name, value, "must be a list of lists of names", "write [['a'], ['b', 'c']]")
    if sum(map(len, inner)) > MAX_ITEMS:
        raise ConfigError(flag.name, f"{len(inner)} lists", f"hold more than {MAX_ITEMS} names", "give fewer")
    return tuple(tuple(each) for each in inner)


def _word(flag: Flag, value: object) -> str:
    if not isinstance(value, str | int | float):
        raise ConfigError(flag.name, value, "must be text", f"write {flag.name} and one word")
    text = str(value)
    if flag.choices and text not in flag.choices:
        raise ConfigError(
            flag.name,
            value,
            f"must be one of {', '.join(flag.choices)}",
            f"try {flag.name} {flag.choices[0]}",
        )
    return text


def _truth(flag: Flag, value: object) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false", "1", "0", "yes", "no"):
        return value.lower() in ("true", "1", "yes")
    if not isinstance(value, bool):
        raise ConfigError(flag.name, value, "takes no value but true or false", f"write {flag.name} alone")
    return value

"""The one error a user's input can raise.

Checks of single values from outside; each returns the value, or names the field in a ConfigError.

Checks of times and rates from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import isfinite, isqrt
from typing import TypeVar

Word = TypeVar("Word", bound=StrEnum)

_TRIED = 10_000
MAX_QUOTED = 1_000
"""Characters of a text that an error quotes."""


class ConfigError(ValueError):
    """A value that breaks a rule, with the fix that would work.

    ``field`` names what was set (``mesh.ep``), ``got`` is the value as given, ``rule`` says what it
    must satisfy and ``fix`` what to write instead.

    >>> print(ConfigError("mesh.ep", 3, "must divide the stage's 16 ranks", "try 2, 4, 8 or 16"))
    mesh.ep=3 must divide the stage's 16 ranks; try 2, 4, 8 or 16
    """

    def __init__(self, field: str, got: object, rule: str, fix: str) -> None:
        self.field = field
        self.got = got
        self.rule = rule
        self.fix = fix
        super().__init__(f"{field}={_shown(got)} {rule}; {fix}")


def _shown(value: object) -> str:
    """``repr`` of the value, cut where it would drown the message; what was typed stands whole for longer."""
    if isinstance(value, int) and value.bit_length() > 400:
        return f"an integer of {value.bit_length()} bits"
    text = repr(str(value) if isinstance(value, StrEnum) else value)
    most = MAX_QUOTED if isinstance(value, str) else 120
    return text if len(text) <= most else f"{text[: most - 3]}..."


def nearest(name: str, known: list[str]) -> str:
    """``did you mean 'x'?`` when something is close, else the list of what is known."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def whole_number(field: str, value: object, *, at_least: int = 1, fix: str | None = None) -> int:
    """``value`` as an int of at least ``at_least``; a bool, float or string is refused.

    Raises:
        ConfigError: naming ``field``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ConfigError(
            field, value, f"must be a whole number of at least {at_least}", fix or f"try {at_least}"
        )
    return value


def one_of(field: str, value: object, allowed: tuple[str, ...]) -> str:
    """``value`` when it is one of the allowed words.

    Raises:
        ConfigError: naming ``field`` and the allowed words.
    """
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(field, value, f"must be {listed(allowed)}", f"try {allowed[0]!r}")
    return value


def word_of(field: str, value: object, words: type[Word]) -> Word:
    """The member of an enum that a text stands for.

    Raises:
        ConfigError: naming ``field`` and the words there are.
    """
    return words(one_of(field, value, tuple(str(word) for word in words)))


def listed(values: Iterable[object]) -> str:
    """Values as a person lists them.

    >>> listed([2, 4, 8])
    '2, 4 or 8'
    """
    words = [str(value) for value in values]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def divisors(number: int, limit: int = 12) -> list[int]:
    """The first ``limit`` divisors of ``number``, ascending; above 10^8, those up to 10^4 alone.

    >>> divisors(16), divisors(2 * 5003)
    ([1, 2, 4, 8, 16], [1, 2, 5003, 10006])
    """
    root = isqrt(number)
    small = [candidate for candidate in range(1, min(root, _TRIED) + 1) if number % candidate == 0]
    large = [] if root > _TRIED else [number // each for each in reversed(small) if each * each != number]
    return [*small, *large][:limit]


MAX_SIZE = 10**9


def check_int(field: str, value: object, low: int = 1, high: int = MAX_SIZE) -> int:
    """A whole number from ``low`` to ``high``; bool, float and string are refused.

    Raises:
        ConfigError: naming ``field``.
    """
    closest = low
    if isinstance(value, int) and not isinstance(value, bool):
        if low <= value <= high:
            return value
        closest = max(low, min(value, high))
    raise ConfigError(field, value, f"must be a whole number from {low} to {high}", f"try {closest}")


def check_number(field: str, value: object) -> float:
    """A finite number above 0, as a float.

    Raises:
        ConfigError: naming ``field``.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_SIZE:
        return float(value)
    raise ConfigError(field, value, f"must be a number above 0 and below {MAX_SIZE}", "try 1.0")


def check_bool(field: str, value: object) -> bool:
    """``True`` or ``False`` and nothing that merely counts as one.

    Raises:
        ConfigError: naming ``field``.
    """
    if not isinstance(value, bool):
        raise ConfigError(field, value, "must be true or false", "try false")
    return value


def check_text(field: str, value: object) -> str:
    """A string that is not blank.

    Raises:
        ConfigError: naming ``field``.
    """
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(field, value, "must be a text that is not blank", "leave the key out instead")
    return value


def check_table(field: str, value: object) -> dict[str, object]:
    """A table (any mapping) whose keys are strings, as a dict.

    Raises:
        ConfigError: naming ``field``.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigError(field, value, "must be a table of named values", "write it as {key: value, ...}")
    return dict(value)


def check_known_keys(table_name: str, given: dict[str, object], known: list[str]) -> None:
    """Every key of ``given`` is one of ``known``.

    Raises:
        ConfigError: for the first unknown key, with the nearest known one.
    """
    for key, value in given.items():
        if key not in known:
            raise ConfigError(f"{table_name}.{key}", value, "is not a known key", nearest(key, known))


def check_seconds(field: str, value: object, *, zero: bool = False) -> float:
    """A finite number of seconds above 0 (or 0 itself where ``zero`` allows it), as a float.

    Raises:
        ConfigError: naming ``field``.
    """
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and isfinite(value)
        and (value > 0 or (zero and value == 0))
    ):
        return float(value)
    rule = f"must be a finite number of seconds {'of 0 or more' if zero else 'above 0'}"
    raise ConfigError(field, value, rule, "try 0" if zero else "try 1e-3")


def check_amount(field: str, value: object, *, zero: bool = True) -> float:
    """A finite number of 0 or more (above 0 without ``zero``): bytes, FLOPs, a share, as a float.

    Raises:
        ConfigError: naming ``field``.
    """
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and isfinite(value)
        and (value > 0 or (zero and value == 0))
    ):
        return float(value)
    rule = f"must be a finite number {'of 0 or more' if zero else 'above 0'}"
    raise ConfigError(field, value, rule, "try 0" if zero else "try 1")


def check_share(field: str, value: object) -> float:
    """A number from 0 to 1.

    Raises:
        ConfigError: naming ``field``.
    """
    number = check_amount(field, value)
    if number > 1:
        raise ConfigError(field, value, "must be a share from 0 to 1", "try 0.5")
    return number

"""Checks of single values from outside; each returns the value, or names the field in a ConfigError."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.errors import ConfigError, nearest

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

"""Checks of times and rates from outside."""

from __future__ import annotations

from math import isfinite

from tracer.errors import ConfigError


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

"""Numbers from a page's query."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from tracer.errors import ConfigError


def whole_of(query: Mapping[str, str], key: str, default: int | None, *, most: int = 1 << 24) -> int | None:
    """A whole number of at least 1; the default where the key is absent or empty.

    Raises:
        ConfigError: for anything else, or more than ``most``.
    """
    text = query.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) <= most):
        raise ConfigError(key, text, f"must be a whole number from 1 to {most:,}", f"try {default or most}")
    return int(text)


def amount_of(query: Mapping[str, str], key: str, default: float) -> float:
    """A number of at least 0; the default where the key is absent or empty.

    Raises:
        ConfigError: for anything else.
    """
    text = query.get(key, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not isfinite(value) or value < 0:
        raise ConfigError(key, text, "must be a number of at least 0", f"try {default:g}")
    return value


def short(value: float) -> str:
    """Three digits, or a whole number from 100 on.

    >>> short(1.5), short(1229.4)
    ('1.5', '1,229')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

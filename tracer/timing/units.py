"""Seconds as a person reads them."""

from __future__ import annotations

_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def format_seconds(seconds: float) -> str:
    """Seconds in the unit that leaves one to three digits before the point.

    >>> format_seconds(0.0), format_seconds(1.64e-7), format_seconds(0.0123), format_seconds(75.0)
    ('0', '164 ns', '12.3 ms', '75 s')
    """
    if seconds == 0:
        return "0"
    if seconds == float("inf"):
        return "for ever"
    for unit, scale in _UNITS:
        if abs(seconds) >= scale * 0.9995:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"

"""The one error a user's input can raise."""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt

_TRIED = 10_000


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
    """``repr`` of the value, cut where it would drown the message."""
    if isinstance(value, int) and value.bit_length() > 400:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


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

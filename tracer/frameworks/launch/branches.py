"""Variables after a branch that the text does not settle: what every way agrees on stays certain."""

from __future__ import annotations

from tracer.frameworks.launch.expansion import Undecided, Value
from tracer.frameworks.unread import Unread


def merged(outcomes: list[dict[str, Value]], asked: tuple[str, ...]) -> dict[str, Value]:
    """Variables after a branch: as they are where all outcomes agree, else undecided.

    What the outcomes have in common at both ends stays certain: ``A+=(--x)`` in a branch leaves only
    ``--x`` undecided.
    """
    found: dict[str, Value] = {}
    for name in dict.fromkeys(key for outcome in outcomes for key in outcome):
        values = [outcome.get(name) for outcome in outcomes]
        first = values[0]
        if first is not None and all(value is first or _same(value, first) for value in values):
            found[name] = first
            continue
        array = any(isinstance(value, tuple) for value in values)
        # Arrays cannot be given by --set: what the condition asks can.
        missing = tuple(dict.fromkeys(asked)) if asked and array else (name,)
        typed = f"${{{name}[@]}}" if array else f"${name}"
        words = _factored(typed, missing, [_as_words(value) for value in values])
        if array:
            found[name] = words
        else:
            found[name] = words[0] if len(words) == 1 else Unread(typed, missing, words)
    return found


def _factored(typed: str, missing: tuple[str, ...], ways: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Words of several ways with what differs in the middle as one undecided word."""
    shortest = min(map(len, ways))
    start = 0
    while start < shortest and all(_same(way[start], ways[0][start]) for way in ways):
        start += 1
    end = 0
    while end < shortest - start and all(_same(way[-1 - end], ways[0][-1 - end]) for way in ways):
        end += 1
    middles: list[tuple[str, ...]] = []
    for way in ways:
        middle = way[start : len(way) - end]
        if not any(_same(middle, other) for other in middles):
            middles.append(middle)
    tail = ways[0][len(ways[0]) - end :]
    return (*ways[0][:start], Undecided(typed, missing, tuple(middles)), *tail)


def _same(one: Value | None, other: Value | None) -> bool:
    """Whether two values are the same, their unread parts too."""
    if one is other:
        return True
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, tuple) and isinstance(other, tuple):
        return all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, Undecided) and isinstance(other, Undecided):
        return _same(one.options, other.options)  # type: ignore[arg-type]
    if isinstance(one, Unread) and isinstance(other, Unread):
        return _same(one.fields, other.fields)
    return True


def _as_words(value: Value | None) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, tuple):
        return value
    if isinstance(value, Unread):
        return value.fields or (value,)
    return tuple(value.split())

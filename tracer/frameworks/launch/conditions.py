"""Whether a ``[ ... ]``, ``[[ ... ]]`` or ``(( ... ))`` holds, where the lines decide it."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import pairwise

from tracer.frameworks.launch.expansion import Expander
from tracer.frameworks.launch.words import PieceKind, Word
from tracer.frameworks.unread import Unread

Truth = bool | None
"""None where a value that nothing sets, or a file of the machine, decides."""

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


def test_holds(words: list[Word], expander: Expander) -> Truth:
    """The truth of the words inside the brackets.

    ``-z "$X"`` of a variable that nothing sets holds: as ``${X:-1}``, it asks whether one is given.
    """
    for joiner, whole in (("||", any), ("-o", any), ("&&", all), ("-a", all)):
        places = [i for i, word in enumerate(words) if word.plain == joiner and 0 < i < len(words) - 1]
        if places:
            edges = [-1, *places, len(words)]
            parts = [test_holds(words[start + 1 : stop], expander) for start, stop in pairwise(edges)]
            if (whole is any) in parts:
                return whole is any
            return None if None in parts else whole is all
    if words and words[0].plain == "!":
        inner = test_holds(words[1:], expander)
        return None if inner is None else not inner
    return _simple(words, expander)


def _simple(words: list[Word], expander: Expander) -> Truth:
    if len(words) == 1:
        text = _given(words[0], expander)
        return None if isinstance(text, Unread) else bool(text)
    if len(words) == 2 and words[0].plain in ("-z", "-n"):
        text = _given(words[1], expander)
        if isinstance(text, Unread):
            if not _only_unset(words[1], expander):
                return None
            text = ""
        return bool(text) == (words[0].plain == "-n")
    if len(words) == 2 and words[0].plain == "-v":
        return expander.look_up(words[1].typed) is not None
    if len(words) != 3:
        return None
    left, right = expander.text(words[0]), expander.text(words[2])
    if isinstance(left, Unread) or isinstance(right, Unread):
        return None
    operator = words[1].typed
    if operator in _NUMBERS:
        try:
            return _NUMBERS[operator](int(left[:20]), int(right[:20]))
        except ValueError:
            return None
    if operator in ("=", "==", "!="):
        pattern = right if len(right) < 200 and words[2].plain is not None else None
        same = fnmatchcase(left, pattern) if pattern is not None else left == right
        return same == (operator != "!=")
    return None


def _given(word: Word, expander: Expander) -> str:
    return expander.text(word)


def _only_unset(word: Word, expander: Expander) -> bool:
    """Whether a word is one variable that nothing sets (and not an array or a command's output)."""
    if len(word.pieces) != 1 or word.pieces[0].kind is not PieceKind.VARIABLE:
        return False
    name = re.match(r"\w+", word.pieces[0].text)
    return name is not None and expander.look_up(name.group()) is None

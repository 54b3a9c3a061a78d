"""A large JSON object read piece by piece: its keys, and the items of its long lists one at a time.

The standard decoder parses one whole value quickly, in C, when it is handed text that begins with one.
So the outermost object and its long lists are walked here, and every item inside is decoded in one go:
memory holds a window of text and one item. A library that reports every token would do more work in Python
for each event and add a dependency.
"""

from __future__ import annotations

from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, NamedTuple, Protocol

WINDOW_CHARS = 1 << 20
MAX_ITEM_CHARS = 64 << 20
"""The longest single value that is decoded whole."""
_SPACES = " \t\r\n"
_NUMBER_ENDS = frozenset(",]} \t\r\n")


class RefusedJson(ValueError):
    """JSON that is cut short, corrupt or holds a value too large to decode."""


class TextSource(Protocol):
    """What text is read from: an open text file."""

    def read(self, size: int, /) -> str:
        """The next characters, at most ``size``; empty at the end."""


class Piece(NamedTuple):
    """A key with its whole value, or with one item of its list (``is_item``)."""

    key: str
    value: Any
    is_item: bool


def pieces(source: TextSource, streamed: frozenset[str]) -> Iterator[Piece]:
    """The pieces of the outermost object; lists under ``streamed`` keys come item by item.

    A file that is one list comes as items of the key ``""``.

    Raises:
        RefusedJson: naming what is wrong and at which character.
    """
    window = _Window(source)
    first = window.peek()
    if first == "[":
        window.skip()
        yield from _items(window, "")
    elif first == "{":
        window.skip()
        yield from _members(window, streamed)
    else:
        raise RefusedJson("it is not a JSON object or list")
    if window.peek():
        raise RefusedJson(f"something follows its end, at character {window.offset:,}")


def _members(window: _Window, streamed: frozenset[str]) -> Iterator[Piece]:
    if window.peek() == "}":
        window.skip()
        return
    while True:
        key = window.value()
        if not isinstance(key, str):
            raise RefusedJson(f"a key is missing at character {window.offset:,}")
        window.expect(":")
        if key in streamed and window.peek() == "[":
            window.skip()
            yield from _items(window, key)
        else:
            yield Piece(key, window.value(), False)
        if window.expect(",}") == "}":
            return


def _items(window: _Window, key: str) -> Iterator[Piece]:
    if window.peek() == "]":
        window.skip()
        return
    while True:
        yield Piece(key, window.value(), True)
        if window.expect(",]") == "]":
            return


class _Window:
    """A stretch of the text, refilled as it is used up."""

    def __init__(self, source: TextSource) -> None:
        self._source = source
        self._decode = JSONDecoder().raw_decode
        self._text = ""
        self._place = 0
        self._before = 0
        self._ended = False

    @property
    def offset(self) -> int:
        """Characters used up so far."""
        return self._before + self._place

    def _more(self, size: int) -> bool:
        """Drop what is used and read on; False at the end."""
        if self._ended:
            return False
        try:
            new = self._source.read(size)
        except (OSError, EOFError, ValueError) as error:  # a broken gzip stream says so in several ways
            raise RefusedJson(f"it cannot be read on after character {self.offset:,}: {error}") from error
        self._before += self._place
        self._text = self._text[self._place :] + new
        self._place = 0
        self._ended = not new
        return bool(new)

    def peek(self) -> str:
        """The next character that is no space, or nothing at the end."""
        while True:
            text, place = self._text, self._place
            while place < len(text) and text[place] in _SPACES:
                place += 1
            self._place = place
            if place < len(text):
                return text[place]
            if not self._more(WINDOW_CHARS):
                return ""

    def skip(self) -> None:
        """Use up one character."""
        self._place += 1

    def expect(self, allowed: str) -> str:
        """The next character, which must be one of these, used up."""
        found = self.peek()
        if not found:
            raise RefusedJson("it is cut short: its end is missing")
        if found not in allowed:
            raise RefusedJson(
                f"{found!r} stands at character {self.offset:,} where JSON has one of {allowed!r}"
            )
        self._place += 1
        return found

    def value(self) -> Any:
        """The next value, decoded whole."""
        if not self.peek():
            raise RefusedJson("it is cut short: its end is missing")
        size = WINDOW_CHARS
        while True:
            try:
                value, end = self._decode(self._text, self._place)
            except JSONDecodeError as error:
                if not self._more(size):
                    raise RefusedJson(self._broken(error)) from error
            except RecursionError as error:
                raise RefusedJson("it nests too deep to be a recording") from error
            except ValueError as error:  # a number of more digits than Python reads
                raise RefusedJson(f"it holds a value that cannot be read: {error}") from error
            else:
                # A number that touches the window's end may go on behind it.
                if end < len(self._text) or isinstance(value, str | dict | list) or not self._more(size):
                    self._place = end
                    return value
            if len(self._text) - self._place > MAX_ITEM_CHARS:
                raise RefusedJson(f"one value in it is longer than {MAX_ITEM_CHARS:,} characters")
            size *= 2  # a long value is tried again on twice the text, so that all tries cost as the last

    def _broken(self, error: JSONDecodeError) -> str:
        place = self._before + error.pos
        if error.pos >= len(self._text) - 1 or error.msg.startswith("Unterminated"):
            return "it is cut short: its end is missing"
        return f"it is not JSON at character {place:,}: {error.msg}"

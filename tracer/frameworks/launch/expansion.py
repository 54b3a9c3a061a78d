"""Words with their variables filled in, as bash does it: splitting, arrays, defaults, arithmetic.

A value that nothing sets stays as it was typed, as an :class:`Unread`: whoever needs it asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tracer.errors import ConfigError
from tracer.frameworks.launch.arithmetic import NotReadError, evaluate, names_in
from tracer.frameworks.launch.words import Piece, PieceKind, Word, pieces_of
from tracer.frameworks.unread import Unread, read_again

MAX_DEPTH = 12
MAX_FIELD = 200_000
MAX_FIELDS = 20_000
_PARAMETER = re.compile(r"(#|!)?([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(?:\[([^\]]*)\])?(.*)", re.DOTALL)
_OPERATOR = re.compile(r"(:[-=+?]|[-=+?]|%%|%|##|#|//|/|:|\^\^|\^|,,|,|@)(.*)", re.DOTALL)
_RANGE = re.compile(r"(.*)\{(-?\d{1,6})\.\.(-?\d{1,6})\}(.*)")


class Undecided(Unread):
    """Words that a branch decides: ``options`` are what they may be."""

    __slots__ = ("options",)
    options: tuple[tuple[str, ...], ...]

    def __new__(
        cls, typed: str, missing: tuple[str, ...] = (), options: tuple[tuple[str, ...], ...] = ()
    ) -> Undecided:
        """The words as typed, and the ways they may be."""
        made = str.__new__(cls, typed)
        made.missing = missing
        made.fields = ()
        made.text = ""
        made.options = options
        return made


def split_fields(parts: Sequence[str]) -> tuple[str, ...]:
    """Texts that stand together split at their white space; a field with an unread part is unread."""
    done: list[str] = []
    current: list[str] = []

    def end() -> None:
        if current:
            done.append(_one_field(current))
            current.clear()

    for part in parts:
        if isinstance(part, Unread) and not part.fields:
            current.append(part)
            continue
        words: Sequence[str] = part.fields if isinstance(part, Unread) else part.split()
        if part[:1].isspace():
            end()
        for number, word in enumerate(words):
            if number:
                end()
            current.append(word)
        if part[-1:].isspace() or (not words and part):
            end()
    end()
    return tuple(done)


def _one_field(parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    unread = [part for part in parts if isinstance(part, Unread)]
    typed = "".join(parts)
    if not unread:
        return typed
    return Unread(typed, tuple(dict.fromkeys(name for part in unread for name in part.missing)))


def _with_options(typed: str, parts: Sequence[str]) -> Undecided | None:
    """Known text around one word that a branch decides: undecided too, each way whole; None for any other."""
    unread = [part for part in parts if isinstance(part, Unread)]
    found = unread[0] if len(unread) == 1 else None
    if not isinstance(found, Undecided) or not found.options:
        return None
    ways = []
    for option in found.options:
        whole = "".join("".join(option) if part is found else part for part in parts)
        if len(option) > 1 or len(whole.split()) > 1 or any(isinstance(word, Unread) for word in option):
            return None
        ways.append((whole,))
    return Undecided(typed, found.missing, tuple(ways))


Value = str | tuple[str, ...]


@dataclass(slots=True)
class Expander:
    """Expands words over the variables of a script; ``${X:=1}`` sets one."""

    variables: MutableMapping[str, Value]
    pinned: Mapping[str, str]
    depth: int = 0

    def fields(self, word: Word) -> list[str]:
        """The words that one word becomes: none, one, or several."""
        plain = word.plain
        if plain is not None:
            return _braces(plain)
        whole = self._whole_word(word)
        if whole is not None:
            return _bounded(whole)
        done: list[str] = []
        current: str | None = None
        unread: list[str] = []
        for piece in word.pieces:
            text = self.text_of(piece)
            if isinstance(text, Unread):
                unread += text.missing or ("",)
                current = (current or "") + text
            elif piece.kind is PieceKind.TEXT or piece.quoted:
                current = (current or "") + text
            else:
                parts = text.split()
                if text[:1].isspace() and current is not None:
                    done.append(current)
                    current = None
                for number, part in enumerate(parts):
                    if number:
                        done.append(current or "")
                        current = None
                    current = (current or "") + part
                if parts and text[-1:].isspace():
                    done.append(current or "")
                    current = None
        if unread:
            decided = _with_options(word.typed, [self.text_of(piece) for piece in word.pieces])
            if decided is not None:
                return [decided]
            whole_text = read_again(self.joined(word.pieces, word.typed))
            return [Unread(word.typed, tuple(dict.fromkeys(name for name in unread if name)), (), whole_text)]
        return _bounded([*done, *([] if current is None else [current])])

    def text(self, word: Word) -> str:
        """A word without splitting, as in an assignment."""
        return self.joined(word.pieces, word.typed)

    def joined(self, pieces: tuple[Piece, ...], typed: str) -> str:
        """Pieces as one text; Unread where a part is."""
        parts = [self.text_of(piece) for piece in pieces]
        if len(pieces) == 1 and pieces[0].text in ("@", "*") and not parts[0] and pieces[0].typed[0] == "$":
            return Unread(typed)
        unread = [part for part in parts if isinstance(part, Unread)]
        if not unread:
            return _bounded(["".join(parts)])[0]
        if len(parts) == 1:
            return parts[0]
        decided = _with_options(typed, parts)
        if decided is not None:
            return decided
        missing = tuple(dict.fromkeys(name for part in unread for name in part.missing))
        text = _bounded(["".join(map(read_again, parts))])[0]
        return Unread(typed, missing, tuple(_bounded(list(split_fields(parts)))), text)

    def text_of(self, piece: Piece) -> str:
        """One piece as text."""
        if piece.kind is PieceKind.TEXT:
            return piece.text
        if piece.kind is PieceKind.COMMAND:
            return Unread(piece.typed)
        if piece.kind is PieceKind.ARITHMETIC:
            return self.arithmetic(piece.text, piece.typed)
        values = self._parameter(piece)
        if isinstance(values, str):
            return values
        if len(values) == 1:
            return values[0]
        unread = [value for value in values if isinstance(value, Unread)]
        if unread:
            return Unread(piece.typed, unread[0].missing, tuple(values))
        return " ".join(values)

    def arithmetic(self, text: str, typed: str) -> str:
        """The value of an expression, or the expression as typed with the names that are missing."""
        missing: list[str] = []
        # "$X" and "${X:-2}" inside are filled in first, as bash does.
        filled = text
        if "$" in text or "`" in text:
            filled = self.joined(pieces_of(text), text)
            if isinstance(filled, Unread):
                return Unread(typed, filled.missing)

        def value_of(name: str) -> int:
            value = self.look_up(name)
            value = value[0] if isinstance(value, tuple) and value else value
            if not isinstance(value, str) or isinstance(value, Unread):
                missing.append(name)
                raise NotReadError(name)
            try:
                return evaluate(value, _no_names)
            except NotReadError:
                missing.append(name)
                raise

        try:
            return str(evaluate(filled, value_of))
        except NotReadError:
            unknown = [name for name in names_in(filled) if not self._is_number(name)]
            return Unread(typed, tuple(dict.fromkeys([*missing, *unknown])))

    def _is_number(self, name: str) -> bool:
        value = self.look_up(name)
        return isinstance(value, str) and not isinstance(value, Unread) and value.strip().isdecimal()

    def look_up(self, name: str) -> Value | None:
        """The value of a variable: a pinned one first; None where nothing sets it."""
        if name in self.pinned:
            return self.pinned[name]
        return self.variables.get(name)

    def _whole_word(self, word: Word) -> list[str] | None:
        """``"${A[@]}"``, ``$A`` and ``$@`` as a whole word: their own words; None for any other word."""
        if len(word.pieces) != 1 or word.pieces[0].kind is not PieceKind.VARIABLE:
            return None
        piece = word.pieces[0]
        values = self._parameter(piece)
        if isinstance(values, tuple):
            if piece.quoted and (piece.text.endswith("[*]") or piece.text == "*"):
                return [self.text_of(piece)]
            if piece.quoted:
                return list(values)
            return [part for value in values for part in _split(value)]
        if piece.quoted and not (isinstance(values, Undecided) and _names_all(piece.text)):
            return [values]
        return _split(values)

    def _parameter(self, piece: Piece) -> Value:
        """The value of ``$X`` or ``${...}``; a tuple for all items of an array."""
        found = _PARAMETER.fullmatch(piece.text)
        if found is None or self.depth > MAX_DEPTH:
            return Unread(piece.typed)
        before, name, index, after = found.groups()
        if before == "!":
            return Unread(piece.typed)
        value = self._items(name, index)
        if before == "#":
            return self._length(value, index, piece.typed)
        self.depth += 1
        try:
            return self._with_operator(piece, name, value, after)
        finally:
            self.depth -= 1

    def _items(self, name: str, index: str | None) -> Value | None:
        if name in ("@", "*"):
            return self.variables.get("@", ())
        if name == "#":
            return str(len(self.variables.get("@", ())))
        if name.isdecimal() and name not in self.pinned:
            arguments = self.variables.get("@", ())
            place = int(name[:6])
            if place == 0:
                return Unread("$0")
            return arguments[place - 1] if isinstance(arguments, tuple) and place <= len(arguments) else None
        value = self.look_up(name)
        if isinstance(value, Unread) and not isinstance(value, Undecided):
            # The name nearest to the launch is asked for.
            return Unread(f"${name}", (name,), value.fields, value.text)
        if isinstance(value, tuple):
            if index in ("@", "*"):
                return value
            place_text = self.arithmetic(index, index) if index else "0"
            if isinstance(place_text, Unread):
                return Unread(f"${{{name}[{index}]}}", place_text.missing)
            at = int(place_text)
            return value[at] if -len(value) <= at < len(value) else None
        return value

    @staticmethod
    def _length(value: Value | None, index: str | None, typed: str) -> str:
        if value is None:
            return "0"
        if isinstance(value, Unread) or (
            isinstance(value, tuple) and any(isinstance(item, Unread) for item in value)
        ):
            return Unread(typed)
        return str(len(value) if isinstance(value, tuple) or index not in ("@", "*") else 1)

    def _with_operator(self, piece: Piece, name: str, value: Value | None, after: str) -> Value:
        unset = Unread(piece.typed, (name,))
        found = _OPERATOR.fullmatch(after) if after else None
        if found is None:
            return unset if value is None or after else value
        operator, rest = found.groups()
        kind = operator.lstrip(":") if operator in (":-", ":=", ":+", ":?") else operator
        if kind in ("-", "=", "+", "?"):
            given = value is not None and not (operator.startswith(":") and value in ("", ()))
            if kind == "+":
                return self._inner(rest) if given else ""
            if given:
                assert value is not None
                return value
            if kind == "?":
                return unset
            other = self._inner(rest)
            if isinstance(other, Unread):
                other = Unread(piece.typed, (name,))
            if kind == "=" and name not in self.pinned:
                self.variables[name] = other
            return other
        if value is None:
            return unset
        if isinstance(value, tuple):
            return tuple(self._edited(item, operator, rest, piece.typed) for item in value)
        return self._edited(value, operator, rest, piece.typed)

    def _inner(self, text: str) -> str:
        """The word after ``:-``; its own quotes go."""
        bare = text.strip("\"'") if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
        return self.joined(pieces_of(bare), text)

    def _edited(self, value: str, operator: str, rest: str, typed: str) -> str:
        """``%``, ``##``, ``/a/b``, ``:0:3``, ``^^``: where the pattern is simple."""
        if isinstance(value, Unread) or operator == "@":
            return Unread(typed, value.missing if isinstance(value, Unread) else ())
        if operator in ("^^", ",,"):
            return value.upper() if operator == "^^" else value.lower()
        if operator in ("^", ","):
            return value[:1].upper() + value[1:] if operator == "^" else value[:1].lower() + value[1:]
        argument = self._inner(rest)
        if isinstance(argument, Unread) or len(value) > 4096:
            return Unread(typed)
        if operator == ":":
            return self._slice(value, argument, typed)
        if operator in ("/", "//"):
            pattern, _, new = argument.partition("/")
            if any(letter in pattern for letter in "*?[#%"):
                return Unread(typed)
            return value.replace(pattern, new, -1 if operator == "//" else 1) if pattern else value
        return _trimmed(value, operator, argument)

    def _slice(self, value: str, argument: str, typed: str) -> str:
        start, _, length = argument.partition(":")
        numbers = [self.arithmetic(part, part) for part in (start, length or str(len(value)))]
        if any(isinstance(number, Unread) for number in numbers):
            return Unread(typed)
        first, count = (int(number) for number in numbers)
        rest = value[first:] if abs(first) <= len(value) else ""
        return rest[:count]


def _bounded(fields: list[str]) -> list[str]:
    """The fields, unless they outgrow what is read.

    Raises:
        ConfigError: for text that doubles itself.
    """
    size = sum(map(len, fields))
    if len(fields) > MAX_FIELDS or size > MAX_FIELD:
        raise ConfigError(
            "flags",
            fields[0][:60] if fields else "",
            f"grows to {len(fields):,} words of {size:,} characters, more than is read",
            "give the launch alone",
        )
    return fields


def _no_names(name: str) -> int:
    raise NotReadError(name)


def _names_all(text: str) -> bool:
    return text.endswith(("[@]", "[*]"))


def _split(value: str) -> list[str]:
    if isinstance(value, Unread):
        return list(value.fields) or [value]
    return value.split()


def _trimmed(value: str, operator: str, pattern: str) -> str:
    """``%`` and ``#`` take the shortest match off the end or the start, doubled the longest."""
    lengths = range(len(value) + 1)
    for length in lengths if len(operator) == 1 else reversed(lengths):
        if operator[0] == "%":
            if fnmatchcase(value[len(value) - length :], pattern):
                return value[: len(value) - length]
        elif fnmatchcase(value[:length], pattern):
            return value[length:]
    return value


def _braces(text: str) -> list[str]:
    """``{0..3}`` as its numbers, where it stands once in a word."""
    found = _RANGE.fullmatch(text) if "{" in text else None
    if found is None:
        return [text]
    first, last = int(found.group(2)), int(found.group(3))
    if abs(last - first) > 1024:
        return [text]
    step = 1 if last >= first else -1
    return [f"{found.group(1)}{number}{found.group(4)}" for number in range(first, last + step, step)]

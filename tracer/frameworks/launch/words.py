"""Shell text to words and operators, with what was quoted: the first half of reading without a shell.

``shlex`` forgets what was quoted, which decides whether ``$A`` splits into words; so words are kept as
pieces here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from tracer.errors import ConfigError

MAX_CHARACTERS = 500_000
MAX_WORDS = 20_000
MAX_TOKENS = 80_000
MAX_EXPANSION = 4_000
MAX_COMMAND = 100_000
_PLAIN = re.compile(r"[^\s\\'\"$`|&;()<>#]+")
_IN_DOUBLE = re.compile(r"[^\\\"$`]+")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=$")
_PLACEHOLDER = re.compile(r"<[A-Za-z_][^<>\n|&;\"'$`]{0,60}>")
#: A backslash that ends a line, also with spaces or a comment after it, which bash would not take.
_CONTINUED = re.compile(r"\\[ \t]*(?:[ \t]#[^\n]*)?(?:\n|\Z)")
_OPERATOR = re.compile(r"<<<|<<-|&>>|;;&|<<|>>|&&|\|\||;;|;&|&>|>&|<&|>\||\|&|[|&;()<>\n]")
REDIRECTS = frozenset({"<<<", "<<-", "&>>", "<<", ">>", "&>", ">&", "<&", ">|", "<", ">"})
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class PieceKind(StrEnum):
    """What a piece of a word is before it is expanded."""

    TEXT = "text"
    VARIABLE = "variable"
    ARITHMETIC = "arithmetic"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word; ``text`` is the inside of ``${...}``, ``$((...))`` or ``$(...)``, ``typed`` all."""

    kind: PieceKind
    text: str
    quoted: bool
    typed: str


@dataclass(frozen=True, slots=True)
class Word:
    """A word as pieces; ``items`` are the words of an array assignment ``NAME=(...)``."""

    pieces: tuple[Piece, ...]
    items: tuple[Word, ...] | None = None

    @property
    def typed(self) -> str:
        """The word as it was typed, without its quotes."""
        return "".join(piece.typed for piece in self.pieces)

    @property
    def plain(self) -> str | None:
        """The text of a word that is not quoted and has nothing to expand, else None."""
        if len(self.pieces) != 1 or self.pieces[0].kind is not PieceKind.TEXT or self.pieces[0].quoted:
            return None
        return self.pieces[0].text


@dataclass(frozen=True, slots=True)
class Operator:
    """``;``, ``|``, ``&&``, a newline, a redirection ..."""

    text: str


@dataclass(slots=True)
class HereDocument:
    """The lines after ``<<END``; ``quoted`` when nothing in them is expanded."""

    end: str
    quoted: bool
    strip: bool
    body: str = ""


Token = Word | Operator | HereDocument


def tokens_of(text: str) -> list[Token]:
    """The tokens of a shell text.

    Raises:
        ConfigError: for quotes or brackets that do not close, and above the bounds of this module.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(
            "flags", f"{len(text)} characters", f"are more than {MAX_CHARACTERS} characters", "cut them"
        )
    found: list[Token] = []
    words = 0
    for token in _Lexer(_tidied(text)).tokens():
        words += isinstance(token, Word) and 1 + len(token.items or ())
        if words > MAX_WORDS or len(found) > MAX_TOKENS:
            what = f"{MAX_WORDS} words" if words > MAX_WORDS else f"{MAX_TOKENS} words, lines and brackets"
            raise ConfigError("flags", f"{len(text)} characters", f"are more than {what}", "cut them")
        found.append(token)
    return found


def pieces_of(text: str) -> tuple[Piece, ...]:
    """The pieces of a text as it would stand in double quotes (a here-document, ``${X:-this}``)."""
    return tuple(_Lexer(text).double_quoted(None))


def quoted(text: str) -> Word:
    """A word that is taken as it stands."""
    return Word((Piece(PieceKind.TEXT, text, True, text),))


def _tidied(text: str) -> str:
    """Without carriage returns, Markdown fences, and the ``$`` prompts of a pasted session."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"(?m)^[ \t]*```.*$", "", text)
    text = re.sub(r"(?m)^([ \t]*)(?:\$|!|>>>) (?=\S)", r"\1", text)
    return re.sub(r"(?m)^%%(?:bash|sh)\b.*$", "", text)


@dataclass(slots=True)
class _Lexer:
    text: str
    place: int = 0
    pending: list[HereDocument] = field(default_factory=list)

    def tokens(self) -> Iterator[Token]:
        """All tokens, in order; a here-document stands where ``<<END`` stood."""
        while self.place < len(self.text):
            letter = self.text[self.place]
            if letter == "\n":
                self.place += 1
                self._read_bodies()
                yield Operator("\n")
            elif letter.isspace():
                self.place += 1
            elif letter == "\\" and (found := _CONTINUED.match(self.text, self.place)):
                self.place = found.end()
            elif letter == "#":
                end = self.text.find("\n", self.place)
                self.place = len(self.text) if end < 0 else end
            elif letter in "|&;()<>" and not self._starts_word():
                yield from self._operator()
            else:
                word = self._word()
                if not (
                    (word.plain or "").isdecimal() and self.text[self.place : self.place + 1] in ("<", ">")
                ):
                    yield word  # a number right before a redirection is its file, not a word
        self._read_bodies()

    def _starts_word(self) -> bool:
        """``<(...)``, ``>(...)`` and a placeholder such as ``<model>`` are parts of words."""
        return self.text.startswith(("<(", ">("), self.place) or bool(
            _PLACEHOLDER.match(self.text, self.place)
        )

    def _operator(self) -> Iterator[Token]:
        found = _OPERATOR.match(self.text, self.place)
        assert found is not None
        self.place = found.end()
        if found.group() not in ("<<", "<<-"):
            yield Operator(found.group())
            return
        while self.text[self.place : self.place + 1] in (" ", "\t"):
            self.place += 1
        if self.place >= len(self.text) or self.text[self.place] == "\n":
            return
        end = self._word()
        document = HereDocument(
            "".join(piece.text for piece in end.pieces),
            any(piece.quoted for piece in end.pieces),
            found.group() == "<<-",
        )
        self.pending.append(document)
        yield document

    def _read_bodies(self) -> None:
        """Read the bodies of the here-documents that this line began."""
        for document in self.pending:
            lines: list[str] = []
            while self.place < len(self.text):
                stop = self.text.find("\n", self.place)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.place : stop]
                self.place = stop + 1
                line = line.lstrip("\t") if document.strip else line
                if line.strip() == document.end:
                    break
                lines.append(line)
            document.body = "\n".join(lines)
        self.pending.clear()

    def _word(self) -> Word:
        pieces: list[Piece] = []
        while self.place < len(self.text):
            text, place = self.text, self.place
            letter = text[place]
            if letter.isspace() or (letter in "|&;()<>" and not self._starts_word()):
                if letter == "(" and len(pieces) == 1 and _ARRAY.match(pieces[0].text):
                    return Word(tuple(pieces), tuple(self._array()))
                break
            if letter == "\\":
                self.place += 2
                if text[place + 1 : place + 2] != "\n":
                    pieces.append(self._text(text[place + 1 : place + 2], quoted=True))
            elif letter == "'":
                pieces.append(self._text(self._until("'", place + 1), quoted=True))
            elif letter == '"':
                self.place += 1
                inside = list(self.double_quoted('"'))
                pieces += inside or [self._text("", quoted=True)]
            elif letter in "$`" or text.startswith(("<(", ">("), place):
                pieces.append(self._expansion(quoted=False))
            else:
                pieces.append(self._text(self._literal(), quoted=False))
        return Word(_joined(pieces))

    def _literal(self) -> str:
        """Letters that mean themselves; ``#`` only begins a comment at the start of a word."""
        found = _PLACEHOLDER.match(self.text, self.place) or _PLAIN.match(self.text, self.place)
        end = found.end() if found else self.place + 1
        text, self.place = self.text[self.place : end], end
        return text

    def _array(self) -> Iterator[Word]:
        opened = self.place
        self.place += 1
        while self.place < len(self.text):
            letter = self.text[self.place]
            if letter == ")":
                self.place += 1
                return
            if letter == "#":
                end = self.text.find("\n", self.place)
                self.place = len(self.text) if end < 0 else end
            elif letter.isspace() or (letter in "|&;(<>" and not self._starts_word()):
                self.place += 1
            elif self.text.startswith("\\\n", self.place):
                self.place += 2
            else:
                yield self._word()
        raise _unclosed("(", self.text[opened:])

    def double_quoted(self, end: str | None) -> Iterator[Piece]:
        """Pieces up to a closing quote, or to the end of the text."""
        opened = self.place
        while self.place < len(self.text):
            letter = self.text[self.place]
            if letter == end:
                self.place += 1
                return
            if letter == "\\":
                after = self.text[self.place + 1 : self.place + 2]
                self.place += 2
                if after != "\n":
                    kept = after if after and after in '$`"\\' else "\\" + after
                    yield self._text(kept, quoted=True)
            elif letter in "$`":
                yield self._expansion(quoted=True)
            else:
                found = _IN_DOUBLE.match(self.text, self.place)
                stop = found.end() if found else self.place + 1
                text, self.place = self.text[self.place : stop], stop
                yield self._text(text, quoted=True)
        if end is not None:
            raise _unclosed("quote", self.text[opened - 1 :])

    def _expansion(self, *, quoted: bool) -> Piece:
        text, start = self.text, self.place
        if text[start] == "`":
            inside = self._until("`", start + 1)
            return Piece(PieceKind.COMMAND, inside, quoted, text[start : self.place])
        if text.startswith("$((", start) or text.startswith("$[", start):
            wide = text.startswith("$((", start)
            end = _closing(text, start + 1, "(" if wide else "[", ")" if wide else "]")
            self.place = end + (2 if wide and text.startswith("))", end) else 1)
            inside = text[start + (3 if wide else 2) : end]
            return Piece(PieceKind.ARITHMETIC, inside, quoted, text[start : self.place])
        if text.startswith(("$(", "<(", ">("), start):
            end = _closing(text, start + 1, "(", ")")
            self.place = end + 1
            return Piece(PieceKind.COMMAND, text[start + 2 : end], quoted, text[start : end + 1])
        if text.startswith("${", start):
            end = _closing(text, start + 1, "{", "}")
            self.place = end + 1
            return Piece(PieceKind.VARIABLE, text[start + 2 : end], quoted, text[start : end + 1])
        if text.startswith("$'", start) and not quoted:
            body = self._until("'", start + 2, escapes=True)
            letters = re.sub(r"\\(.)", lambda found: _ANSI.get(found.group(1), found.group(0)), body)
            return self._text(letters, quoted=True)
        if text.startswith('$"', start) and not quoted:
            self.place += 1
            return self._text("", quoted=False)
        name = _NAME.match(text, start + 1)
        self.place = name.end() if name else start + 1
        if name is None:
            return self._text("$", quoted=quoted)
        return Piece(PieceKind.VARIABLE, name.group(), quoted, text[start : self.place])

    def _until(self, end: str, start: int, *, escapes: bool = False) -> str:
        place = start
        while True:
            place = self.text.find(end, place)
            if place < 0:
                raise _unclosed("quote", self.text[start - 1 :])
            if not ((escapes or end == "`") and self.text[place - 1] == "\\"):
                break
            place += 1
        self.place = place + 1
        return self.text[start:place]

    @staticmethod
    def _text(text: str, *, quoted: bool) -> Piece:
        return Piece(PieceKind.TEXT, text, quoted, text)


def _joined(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Neighbouring plain texts as one piece."""
    found: list[Piece] = []
    run: list[str] = []
    for piece in [*pieces, None]:
        if piece is not None and piece.kind is PieceKind.TEXT and not piece.quoted:
            run.append(piece.text)
            continue
        if run:
            text = "".join(run)
            found.append(Piece(PieceKind.TEXT, text, False, text))
            run = []
        if piece is not None:
            found.append(piece)
    return tuple(found)


def _closing(text: str, start: int, opening: str, closing: str) -> int:
    """The place of the bracket that closes the one at ``start``; quotes hide brackets.

    For ``$((`` the place is that of the first of the two closing brackets.
    """
    depth, quote, place = 0, "", start
    double = opening == "(" and text.startswith("((", start)
    stop = min(len(text), start + (MAX_COMMAND if opening == "(" and not double else MAX_EXPANSION))
    while place < stop:
        letter = text[place]
        if letter == "\\":
            place += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"" and not (opening == "{" and letter == "'"):
            quote = letter
        elif letter == opening:
            depth += 1
        elif letter == closing:
            depth -= 1
            if depth == (1 if double else 0):
                if not double or text[place + 1 : place + 2] == closing:
                    return place
                double = False  # "$( (subshell) ...)": a command after all
        place += 1
    raise _unclosed(opening, text[max(0, start - 1) :])


def _unclosed(what: str, text: str) -> ConfigError:
    shown = text if len(text) <= 200 else f"{text[:197]}..."
    return ConfigError("flags", shown, f"has a {what} that does not close", "close it, or drop it")

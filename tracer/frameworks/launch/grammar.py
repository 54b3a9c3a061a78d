"""Tokens of a shell text to its statements: commands, ``if``, ``for``, ``case``, functions.

Fragments are pasted as often as whole scripts, so a ``fi`` or ``done`` that is missing or left over ends
nothing in an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tracer.errors import ConfigError
from tracer.frameworks.launch.words import (
    REDIRECTS,
    HereDocument,
    Operator,
    Piece,
    PieceKind,
    Token,
    Word,
    quoted,
)

MAX_NESTED = 40
_ENDS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})


@dataclass(slots=True)
class Command:
    """Words of one command, and its redirections as (operator, target)."""

    words: list[Word] = field(default_factory=list)
    redirects: list[tuple[str, Word | HereDocument]] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    """Statements in order; each with the operator before it (``;``, ``&&``, ``||``, ``|``)."""

    items: list[tuple[str, Node]] = field(default_factory=list)
    subshell: bool = False


@dataclass(slots=True)
class If:
    """Conditions with what follows each; the last may have no condition (``else``)."""

    branches: list[tuple[Block | None, Block]]


@dataclass(slots=True)
class For:
    """``for NAME in WORDS``; ``words`` is None for ``for ((...))`` and without ``in``."""

    name: str
    words: list[Word] | None
    body: Block


@dataclass(slots=True)
class While:
    """``while`` or ``until``."""

    condition: Block
    body: Block


@dataclass(slots=True)
class Case:
    """``case WORD in PATTERNS) ... esac``."""

    word: Word
    branches: list[tuple[list[Word], Block]]


@dataclass(slots=True)
class Function:
    """A function by name."""

    name: str
    body: Node


Node = Command | Block | If | For | While | Case | Function


def parse_shell(tokens: Sequence[Token]) -> Block:
    """The statements of a script.

    Raises:
        ConfigError: when blocks nest deeper than ``MAX_NESTED``.
    """
    parser = _Parser(tokens)
    whole = parser.block(frozenset())
    while parser.place < len(tokens):  # a closing word or bracket that nothing opened
        parser.place += 1
        whole.items += parser.block(frozenset()).items
    return whole


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.place = 0
        self.depth = 0

    def peek(self) -> str | None:
        """The text of a reserved word or operator at this place; None for any other word."""
        if self.place >= len(self.tokens):
            return None
        token = self.tokens[self.place]
        if isinstance(token, Operator):
            return token.text
        return token.plain if isinstance(token, Word) and token.items is None else None

    def skip(self, *texts: str) -> bool:
        """Step over one of these, if it is here."""
        if self.place < len(self.tokens) and self.peek() in texts:
            self.place += 1
            return True
        return False

    def newlines(self) -> None:
        """Step over empty statements."""
        while self.skip("\n", ";", "&"):
            pass

    def block(self, ends: frozenset[str]) -> Block:
        """Statements up to one of ``ends``, which is left in place."""
        self.depth += 1
        if self.depth > MAX_NESTED:
            raise ConfigError(
                "flags",
                f"{self.depth} blocks inside each other",
                f"are more than {MAX_NESTED}",
                "give the launch alone",
            )
        found, before = Block(), ";"
        while self.place < len(self.tokens):
            text = self.peek()
            if text in ends or text in (")", ";;", ";&", ";;&"):
                break
            if text in ("\n", ";", "&"):
                before = ";" if before not in ("&&", "||", "|") or text != "\n" else before
                self.place += 1
            elif text in ("&&", "||", "|", "|&"):
                before = "|" if text == "|&" else text
                self.place += 1
            elif text in _ENDS and isinstance(self.tokens[self.place], Word):
                self.place += 1  # nothing opened it
            else:
                self._statement(found, before)
                before = ";"
        self.depth -= 1
        return found

    def _statement(self, block: Block, before: str) -> None:
        node = self.node()
        last = block.items[-1][1] if block.items else None
        continued = isinstance(node, Command) and node.words and _is_flag(node.words[0])
        if continued and before == ";" and isinstance(last, Command) and isinstance(node, Command):
            last.words += node.words  # a line that begins with a flag goes on the command before it
            last.redirects += node.redirects
        else:
            block.items.append((before, node))

    def node(self) -> Node:
        """One statement."""
        text = self.peek()
        readers = {
            "if": self._if, "for": self._for, "select": self._for, "while": self._while,
            "until": self._while, "case": self._case, "function": self._function,
        }  # fmt: skip
        if text in readers:
            self.place += 1
            return readers[text]()
        if text == "(" and self._is_arithmetic():
            return self._arithmetic()
        if text in ("{", "("):
            self.place += 1
            inside = self.block(frozenset({"}" if text == "{" else ")"}))
            self.skip("}" if text == "{" else ")")
            inside.subshell = text == "("
            self._redirects(Command())
            return inside
        return self._command()

    def _is_arithmetic(self) -> bool:
        """Whether ``((`` stands here; ``( (`` is two subshells, which scripts do not write."""
        after = self.tokens[self.place + 1 : self.place + 2]
        return bool(after) and isinstance(after[0], Operator) and after[0].text == "("

    def _arithmetic(self) -> Node:
        """``(( N > 1 ))`` as the word ``((`` and its expression."""
        self.place += 2
        texts: list[str] = []
        depth = 2
        while self.place < len(self.tokens) and depth:
            token = self.tokens[self.place]
            text = token.typed if isinstance(token, Word) else getattr(token, "text", "")
            depth += {"(": 1, ")": -1}.get(text, 0) if isinstance(token, Operator) else 0
            if depth > 1 or text != ")":
                texts.append(text)
            self.place += 1
        inside = " ".join(texts)
        return Command([quoted("(("), Word((Piece(PieceKind.ARITHMETIC, inside, True, f"(({inside}))"),))])

    def _test(self, command: Command) -> None:
        """The words of ``[[ ... ]]``, in which ``&&``, ``<`` and brackets are words."""
        while self.place < len(self.tokens):
            token = self.tokens[self.place]
            self.place += 1
            if isinstance(token, Operator):
                command.words.append(Word((Piece(PieceKind.TEXT, token.text, False, token.text),)))
            elif isinstance(token, Word):
                command.words.append(token)
                if token.plain == "]]":
                    return

    def _command(self) -> Node:
        command = Command()
        if self.peek() == "[[":
            self._test(command)
            return command
        while self.place < len(self.tokens):
            token = self.tokens[self.place]
            if isinstance(token, Word):
                command.words.append(token)
                self.place += 1
                if len(command.words) == 1 and self.peek() == "(" and token.plain is not None:
                    after = self.tokens[self.place + 1 : self.place + 2]
                    if after and isinstance(after[0], Operator) and after[0].text == ")":
                        self.place += 2
                        self.newlines()
                        return Function(token.plain, self.node())
            elif not self._redirect(command):
                break
        if not command.words and not command.redirects:
            self.place += 1  # an operator that begins nothing
        return command

    def _redirects(self, command: Command) -> None:
        while self._redirect(command):
            pass

    def _redirect(self, command: Command) -> bool:
        """Read one redirection into the command."""
        if self.place >= len(self.tokens):
            return False
        token = self.tokens[self.place]
        if isinstance(token, HereDocument):
            command.redirects.append(("<<", token))
            self.place += 1
            return True
        if not isinstance(token, Operator) or token.text not in REDIRECTS:
            return False
        self.place += 1
        if self.place < len(self.tokens):
            target = self.tokens[self.place]
            if isinstance(target, Word):
                command.redirects.append((token.text, target))
                self.place += 1
        return True

    def _if(self) -> Node:
        branches: list[tuple[Block | None, Block]] = []
        while True:
            condition = self.block(frozenset({"then", "fi"}))
            self.skip("then")
            branches.append((condition, self.block(frozenset({"elif", "else", "fi"}))))
            if not self.skip("elif"):
                break
        if self.skip("else"):
            branches.append((None, self.block(frozenset({"fi"}))))
        self.skip("fi")
        return If(branches)

    def _for(self) -> Node:
        name, words = "", None
        if self.skip("("):
            depth = 1
            while self.place < len(self.tokens) and depth:
                depth += {"(": 1, ")": -1}.get(self.peek() or "", 0)
                self.place += 1
        elif self.place < len(self.tokens):
            token = self.tokens[self.place]
            name = token.typed if isinstance(token, Word) else ""
            self.place += 1
            if self.skip("in"):
                words = []
                while self.place < len(self.tokens):
                    token = self.tokens[self.place]
                    if not isinstance(token, Word):
                        break
                    words.append(token)
                    self.place += 1
        self.newlines()
        self.skip("do")
        body = self.block(frozenset({"done"}))
        self.skip("done")
        self._redirects(Command())
        return For(name, words, body)

    def _while(self) -> Node:
        condition = self.block(frozenset({"do"}))
        self.skip("do")
        body = self.block(frozenset({"done"}))
        self.skip("done")
        self._redirects(Command())
        return While(condition, body)

    def _case(self) -> Node:
        word = self.tokens[self.place] if self.place < len(self.tokens) else Word(())
        self.place += 1
        self.newlines()
        self.skip("in")
        branches: list[tuple[list[Word], Block]] = []
        while self.place < len(self.tokens):
            self.newlines()
            if self.skip("esac"):
                break
            self.skip("(")
            patterns: list[Word] = []
            while self.place < len(self.tokens) and not self.skip(")"):
                token = self.tokens[self.place]
                if isinstance(token, Word):
                    patterns.append(token)
                self.place += 1
            branches.append((patterns, self.block(frozenset({"esac"}))))
            self.skip(";;", ";&", ";;&")
        return Case(word if isinstance(word, Word) else Word(()), branches)

    def _function(self) -> Node:
        token = self.tokens[self.place] if self.place < len(self.tokens) else Word(())
        name = token.typed if isinstance(token, Word) else ""
        self.place += 1
        if self.skip("("):
            self.skip(")")
        self.newlines()
        return Function(name, self.node())


def _is_flag(word: Word) -> bool:
    return word.typed.startswith("-") and len(word.typed) > 1

"""Whole-number arithmetic of ``$((...))``, evaluated here: nothing is run."""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_DEPTH = 40
MAX_TOKENS = 400
LIMIT = 10**15
_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)|\$?\{?([A-Za-z_]\w*)\}?"
    r"|(\*\*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%()<>?:!~]))"
)
_LEVELS = (
    ("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip


class NotReadError(Exception):
    """The expression is not one that is read here, or needs a value that is not known."""


def evaluate(text: str, value_of: Callable[[str], int]) -> int:
    """The value of an expression; ``value_of`` gives the value of a name.

    >>> evaluate("(A*2 + 1) % 4", lambda name: 3)
    3

    Raises:
        NotReadError: for anything else than whole numbers, names and operators, and above the bounds.
    """
    return _Expression(_tokens(text), value_of).whole()


def names_in(text: str) -> tuple[str, ...]:
    """The names that an expression uses, in order, each once."""
    return tuple(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", re.sub(r"0[xX][0-9a-fA-F]+", "0", text))))


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        token = _TOKEN.match(text, place)
        if token is None or len(found) >= MAX_TOKENS:
            raise NotReadError(text)
        found.append(next(group for group in token.groups() if group))
        place = token.end()
    return found


class _Expression:
    """Recursive descent over the tokens; every result is bounded by ``LIMIT``."""

    def __init__(self, tokens: list[str], value_of: Callable[[str], int]) -> None:
        self.tokens = tokens
        self.value_of = value_of
        self.place = 0
        self.depth = 0

    def whole(self) -> int:
        if not self.tokens:
            return 0
        value = self.choice()
        if self.place != len(self.tokens):
            raise NotReadError("left over")
        return value

    def choice(self) -> int:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotReadError("too deep")
        value = self.level(0)
        if self.take("?"):
            first = self.choice()
            if not self.take(":"):
                raise NotReadError("no : after ?")
            second = self.choice()
            value = first if value else second
        self.depth -= 1
        return value

    def level(self, number: int) -> int:
        if number == len(_LEVELS):
            return self.power()
        value = self.level(number + 1)
        while (operator := self.take(*_LEVELS[number])) is not None:
            value = _bounded(_apply(operator, value, self.level(number + 1)))
        return value

    def power(self) -> int:
        value = self.unary()
        if self.take("**"):
            exponent = self.power()
            if not 0 <= exponent <= 64:
                raise NotReadError("exponent")
            value = _bounded(value**exponent)
        return value

    def unary(self) -> int:
        self.depth += 1
        if self.depth > MAX_DEPTH or self.place >= len(self.tokens):
            raise NotReadError("ends early, or too deep")
        token = self.tokens[self.place]
        self.place += 1
        if token == "(":
            value = self.choice()
            if not self.take(")"):
                raise NotReadError("no )")
        elif token == "-":
            value = -self.unary()
        elif token == "+":
            value = self.unary()
        elif token == "!":
            value = int(not self.unary())
        elif token == "~":
            value = ~self.unary()
        elif token[0].isdigit():
            value = _number(token)
        elif token[0].isalpha() or token[0] == "_":
            value = self.value_of(token)
        else:
            raise NotReadError(token)
        self.depth -= 1
        return _bounded(value)

    def take(self, *wanted: str) -> str | None:
        if self.place < len(self.tokens) and self.tokens[self.place] in wanted:
            self.place += 1
            return self.tokens[self.place - 1]
        return None


def _number(token: str) -> int:
    if len(token) > 20:
        raise NotReadError(token)
    try:
        return int(
            token, 16 if token[:2] in ("0x", "0X") else 8 if token[0] == "0" and len(token) > 1 else 10
        )
    except ValueError as error:
        raise NotReadError(token) from error


def _apply(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%"):
        if right == 0:
            raise NotReadError("division by zero")
        whole = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return whole if operator == "/" else left - whole * right
    if operator in ("<<", ">>"):
        if not 0 <= right <= 60:
            raise NotReadError("shift")
        return left << right if operator == "<<" else left >> right
    simple: dict[str, Callable[[], int]] = {
        "||": lambda: bool(left) or bool(right),
        "&&": lambda: bool(left) and bool(right),
        "==": lambda: left == right,
        "!=": lambda: left != right,
        "<": lambda: left < right,
        ">": lambda: left > right,
        "<=": lambda: left <= right,
        ">=": lambda: left >= right,
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
    }
    return int(simple[operator]())


def _bounded(value: int) -> int:
    if abs(value) > LIMIT:
        raise NotReadError("too large")
    return value

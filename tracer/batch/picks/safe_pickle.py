"""A reader of pickles that holds plain data alone: dicts, lists, tuples, strings and numbers.

A pickle is a program. The standard reader can be told to refuse classes, but not to refuse a program that
asks for gigabytes in six bytes (an index of the memo), or hashes nested tuples for ever (a key). A Flight
Recorder dump needs some thirty harmless instructions, so this reader knows those and no others.
Keys must be strings or numbers, containers are counted, and nothing is looked up by name: a file of tensors
names a few functions, and its reader gives an :class:`Outside` that knows those and calls none of Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack_from
from typing import Any, Protocol

MAX_DUMP_BYTES = 64 << 20
"""A dump of 20,000 entries with stack traces takes about 10 MB."""
MAX_CONTAINERS = 4_000_000
MAX_DEPTH = 64
_KEYS = frozenset({str, int})


class RefusedPickle(ValueError):
    """A pickle that is cut short, corrupt, or more than plain data."""


class _Head(Exception):
    """Raised inside when the reader has reached the key it was to stop at."""


class Outside(Protocol):
    """What a pickle may name beside plain data; each method raises :class:`RefusedPickle` for the rest."""

    def named(self, name: str) -> object:
        """What stands for ``module.name``; never the thing itself."""

    def called(self, function: object, arguments: object) -> object:
        """The value of a call of something that :meth:`named` gave."""

    def stored(self, key: object) -> object:
        """What is kept outside the pickle under a key."""


def loads(data: bytes, outside: Outside | None = None) -> Any:
    """The value in a pickle of plain data, and of what ``outside`` knows.

    Raises:
        RefusedPickle: for anything else.
    """
    return _read(data, None, outside)[0]


def load_head(data: bytes, stop: str) -> tuple[dict[str, Any], bool] | None:
    """The keys of the outermost dict before ``stop``, and whether the list under ``stop`` has items.

    None where ``stop`` is not a key of the outermost dict.

    Raises:
        RefusedPickle: as :func:`loads`, for the part that is read, and where the end is missing.
    """
    if not data.endswith(b"."):
        raise RefusedPickle("it is cut short: its end is missing")
    value, place = _read(data, stop)
    if place is None:
        return None
    after = data[place : place + 1]
    while after in (b"q", b"r", b"\x94"):  # the key, and then the list, may be put in the memo
        place += {b"q": 2, b"r": 5, b"\x94": 1}[after]
        after = data[place : place + 1]
    if after != b"]":
        return None
    place += 1
    while (after := data[place : place + 1]) in (b"q", b"r", b"\x94"):
        place += {b"q": 2, b"r": 5, b"\x94": 1}[after]
    # An empty list is followed by the next key or the end of the dict, or (PyTorch) by a mark at once closed.
    return value, after == b"}" or (after == b"(" and data[place + 1 : place + 2] != b"e")


def _read(data: bytes, stop: str | None, outside: Outside | None = None) -> tuple[Any, int | None]:
    if len(data) > MAX_DUMP_BYTES:
        raise RefusedPickle(f"it has {len(data):,} bytes, more than the {MAX_DUMP_BYTES:,} that are read")
    try:
        return _run(data, stop, outside)
    except RefusedPickle:
        raise
    except (IndexError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise RefusedPickle(f"it is cut short or corrupt ({type(error).__name__})") from error
    except Exception as error:  # struct.error has no other base
        raise RefusedPickle(f"it is cut short or corrupt ({type(error).__name__})") from error


def _run(data: bytes, stop: str | None, outside: Outside | None) -> tuple[Any, int | None]:
    """The machine: a stack, marks, a memo.

    One loop, because a call for each of the 130,000 instructions of a usual dump would double its time; they
    are tested in order of their frequency.
    """
    stack: list[Any] = []
    marks: list[list[Any]] = []
    memo: dict[int, Any] = {}
    push, place, containers, size = stack.append, 0, 0, len(data)
    while place < size:
        code = data[place]
        place += 1
        if code == 0x68:  # BINGET
            push(memo[data[place]])
            place += 1
        elif code == 0x4B:  # BININT1
            push(data[place])
            place += 1
        elif code == 0x4D:  # BININT2
            push(data[place] | data[place + 1] << 8)
            place += 2
        elif code == 0x28:  # MARK
            if len(marks) >= MAX_DEPTH:
                raise RefusedPickle(f"it nests deeper than {MAX_DEPTH} levels")
            marks.append(stack)
            stack = []
            push = stack.append
        elif code in (0x5D, 0x7D):  # EMPTY_LIST, EMPTY_DICT
            containers += 1
            if containers > MAX_CONTAINERS:
                raise RefusedPickle(f"it holds more than {MAX_CONTAINERS:,} lists and dicts")
            push([] if code == 0x5D else {})
        elif code == 0x65:  # APPENDS
            items, stack = stack, marks.pop()
            push = stack.append
            _list(stack[-1]).extend(items)
        elif code == 0x94:  # MEMOIZE
            memo[len(memo)] = stack[-1]
        elif code == 0x71:  # BINPUT
            memo[data[place]] = stack[-1]
            place += 1
        elif code == 0x72:  # LONG_BINPUT
            memo[_u32(data, place)] = stack[-1]
            place += 4
        elif code == 0x6A:  # LONG_BINGET
            push(memo[_u32(data, place)])
            place += 4
        elif code in (0x58, 0x8C):  # BINUNICODE, SHORT_BINUNICODE
            length = _u32(data, place) if code == 0x58 else data[place]
            place += 4 if code == 0x58 else 1
            if place + length > size:
                raise RefusedPickle("it is cut short inside a text")
            text = data[place : place + length].decode("utf-8")
            place += length
            if text == stop and len(marks) == 1 and len(stack) % 2 == 0:
                return _pairs({}, stack), place
            push(text)
        elif code == 0x4E:  # NONE
            push(None)
        elif code == 0x88:  # NEWTRUE
            push(True)
        elif code == 0x89:  # NEWFALSE
            push(False)
        elif code == 0x4A:  # BININT
            push(unpack_from("<i", data, place)[0])
            place += 4
        elif code == 0x8A:  # LONG1
            length = data[place]
            if place + 1 + length > size:
                raise RefusedPickle("it is cut short inside a number")
            push(int.from_bytes(data[place + 1 : place + 1 + length], "little", signed=True))
            place += 1 + length
        elif code == 0x47:  # BINFLOAT
            push(unpack_from(">d", data, place)[0])
            place += 8
        elif code == 0x75:  # SETITEMS
            items, stack = stack, marks.pop()
            push = stack.append
            _pairs(_dict(stack[-1]), items)
        elif code == 0x61:  # APPEND
            item = stack.pop()
            _list(stack[-1]).append(item)
        elif code == 0x73:  # SETITEM
            item, key = stack.pop(), stack.pop()
            _pairs(_dict(stack[-1]), [key, item])
        elif code in (0x29, 0x85, 0x86, 0x87):  # EMPTY_TUPLE, TUPLE1, TUPLE2, TUPLE3
            containers += 1
            length = 0 if code == 0x29 else code - 0x84
            if containers > MAX_CONTAINERS or len(stack) < length:
                raise RefusedPickle("it holds more tuples than a dump has, or a broken one")
            items = stack[len(stack) - length :]
            del stack[len(stack) - length :]
            push(tuple(items))
        elif code == 0x74:  # TUPLE
            items, stack = stack, marks.pop()
            push = stack.append
            push(tuple(items))
        elif code == 0x80:  # PROTO
            if data[place] > 5:
                raise RefusedPickle(f"its protocol {data[place]} is newer than 5")
            place += 1
        elif code == 0x95:  # FRAME
            place += 8
        elif code == 0x2E:  # STOP
            if len(stack) != 1 or marks:
                raise RefusedPickle("it ends with values left over")
            return stack[0], None
        elif outside is not None and code in _OUTSIDE_CODES:
            place = _ask(outside, code, data, place, stack)
        else:
            raise RefusedPickle(_instruction(data, place - 1))
    raise RefusedPickle("it is cut short: its end is missing")


_OUTSIDE_CODES = frozenset({0x63, 0x93, 0x52, 0x51})


def _ask(outside: Outside, code: int, data: bytes, place: int, stack: list[Any]) -> int:
    """Carry out an instruction that names something (GLOBAL, STACK_GLOBAL), calls it, or fetches by a key."""
    if code == 0x63:  # GLOBAL
        end = data.index(b"\n", data.index(b"\n", place) + 1)
        stack.append(outside.named(_global(data, place)))
        return end + 1
    if code == 0x93:  # STACK_GLOBAL
        name, module = stack.pop(), stack.pop()
        stack.append(outside.named(f"{module}.{name}"[:120]))
    elif code == 0x52:  # REDUCE
        arguments, function = stack.pop(), stack.pop()
        stack.append(outside.called(function, arguments))
    else:  # BINPERSID
        stack.append(outside.stored(stack.pop()))
    return place


def _u32(data: bytes, place: int) -> int:
    found: int = unpack_from("<I", data, place)[0]
    return found


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise RefusedPickle("it appends to what is no list")
    return value


def _dict(value: Any) -> dict[Any, Any]:
    if type(value) is not dict:
        raise RefusedPickle("it sets a key of what is no dict")
    return value


def _pairs(into: dict[Any, Any], items: list[Any]) -> dict[Any, Any]:
    """Keys and values in turns, laid into a dict; a key that is a container could be hashed for ever."""
    if len(items) % 2:
        raise RefusedPickle("it sets a key without a value")
    keys = items[::2]
    if not _KEYS.issuperset(map(type, keys)):
        raise RefusedPickle("it uses a container or an unknown value as a key")
    into.update(zip(keys, items[1::2], strict=True))
    return into


_CLASS_CODES: dict[int, Callable[[bytes, int], str]] = {
    0x63: lambda data, place: _global(data, place + 1),
    0x69: lambda data, place: _global(data, place + 1),
}
_WORDS = {0x93: "a class", 0x52: "a call", 0x81: "a new object", 0x92: "a new object", 0x6F: "a new object",
          0x62: "an object's state", 0x50: "an outside object", 0x51: "an outside object",
          0x82: "a registered class", 0x83: "a registered class", 0x84: "a registered class"}  # fmt: skip


def _instruction(data: bytes, place: int) -> str:
    """What a refused instruction would have done."""
    code = data[place]
    if code in _CLASS_CODES:
        return f"it asks for {_CLASS_CODES[code](data, place)}, and no real dump needs a class or a function"
    if code in _WORDS:
        return f"it asks for {_WORDS[code]}, and no real dump needs a class or a function"
    return f"it holds the instruction {code:#04x}, which no dump of plain data needs"


def _global(data: bytes, place: int) -> str:
    """Module and name that a GLOBAL or INST instruction gives, cut to a readable length."""
    words = data[place : place + 200].split(b"\n", 2)
    return ".".join(word.decode("ascii", "replace")[:60] for word in words[:2])

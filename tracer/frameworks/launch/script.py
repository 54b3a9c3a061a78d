"""A shell text read to the commands that it would run. Nothing is run and no file is opened.

What is certain is followed: assignments, arrays, ``:-`` defaults, loops over known words, functions.
Where a value from outside decides a branch, both are read; a variable that they leave different becomes
:class:`~tracer.frameworks.launch.expansion.Undecided`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tracer.errors import ConfigError
from tracer.frameworks.launch.branches import merged
from tracer.frameworks.launch.conditions import Truth, test_holds
from tracer.frameworks.launch.expansion import Expander, Undecided, Value, split_fields
from tracer.frameworks.launch.grammar import Block, Case, Command, For, If, Node, While, parse_shell
from tracer.frameworks.launch.slurm import directives_of, slurm_variables
from tracer.frameworks.launch.words import HereDocument, Piece, PieceKind, Word, pieces_of, tokens_of
from tracer.frameworks.unread import Unread

MAX_STEPS = 20_000
MAX_COMMANDS = 512
MAX_ROUNDS = 64
MAX_CALLS = 8
MAX_FILE = 400_000
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]]*)\])?(\+?)=", re.DOTALL)
_DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command that the text runs: its words expanded, the variables it sees, and what it is typed as.

    ``files`` are the texts that here-documents before it wrote, by path.
    """

    words: tuple[str, ...]
    variables: Mapping[str, Value]
    files: Mapping[str, str]
    here: str | None = None


@dataclass(slots=True)
class Script:
    """Everything read from one text."""

    commands: list[ShellCommand] = field(default_factory=list)
    variables: dict[str, Value] = field(default_factory=dict)
    sbatch: tuple[str, ...] = ()


def read_script(
    text: str,
    pinned: Mapping[str, str],
    arguments: tuple[str, ...] = (),
    outside: Mapping[str, Value] | None = None,
) -> Script:
    """The commands of a shell text.

    ``pinned`` are values that the caller gives (``--set``) and that win over the text's own; ``outside``
    are variables of what starts this text.

    Raises:
        ConfigError: for quotes that do not close, and texts above the bounds.
    """
    block = parse_shell(tokens_of(text))
    directives = directives_of(text)
    reader = _Reader(pinned)
    reader.variables.update(outside or {})
    reader.variables["@"] = arguments
    reader.variables.update(slurm_variables(directives))
    reader.block(block)
    if not reader.commands:
        for body in list(reader.functions.values()):
            reader.node(body)
    return Script(reader.commands, dict(reader.variables), directives)


class _Reader:
    """Walks the statements with the variables they set."""

    def __init__(self, pinned: Mapping[str, str]) -> None:
        self.pinned = pinned
        self.variables: dict[str, Value] = {}
        self.functions: dict[str, Node] = {}
        self.commands: list[ShellCommand] = []
        self.files: dict[str, str] = {}
        self.steps = 0
        self.calls = 0
        self.ended = False

    @property
    def expander(self) -> Expander:
        return Expander(self.variables, self.pinned)

    def block(self, block: Block) -> Truth:
        """Read statements in order; the truth of the last."""
        truth: Truth = True
        saved = dict(self.variables) if block.subshell else None
        for before, node in block.items:
            if self.ended or len(self.commands) >= MAX_COMMANDS:
                break
            if (before == "&&" and truth is False) or (before == "||" and truth is True):
                continue
            if before in ("&&", "||") and truth is None:
                self._either([node, None], ())
                continue
            truth = self.node(node)
        if saved is not None:
            self.variables = saved
        return truth

    def node(self, node: Node) -> Truth:
        """Read one statement."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise ConfigError(
                "flags", f"over {MAX_STEPS:,} statements", "are more than is read", "give the launch alone"
            )
        if self.ended:
            return None
        if isinstance(node, Block):
            return self.block(node)
        if isinstance(node, Command):
            return self._command(node)
        if isinstance(node, If):
            return self._if(node)
        if isinstance(node, Case):
            return self._case(node)
        if isinstance(node, For):
            return self._for(node)
        if isinstance(node, While):
            return self._while(node)
        self.functions[node.name] = node.body
        return True

    def _if(self, node: If) -> Truth:
        open_branches: list[Node | None] = []
        asked: list[str] = []
        for condition, body in node.branches:
            truth: Truth = True if condition is None else self._truth(condition, asked)
            if truth is False:
                continue
            open_branches.append(body)
            if truth is True:
                break
        else:
            open_branches.append(None)
        return self._either(open_branches, tuple(asked))

    def _truth(self, condition: Block, asked: list[str]) -> Truth:
        """The truth of a condition; the variables it needs are put into ``asked``."""
        truth = self.block(condition)
        if truth is None:
            for _, node in condition.items:
                for word in node.words if isinstance(node, Command) else ():
                    text = self.expander.text(word)
                    if isinstance(text, Unread):
                        asked += text.missing
        return truth

    def _either(self, branches: list[Node | None], asked: tuple[str, ...]) -> Truth:
        """Read branches of which one is taken, and keep what all of them agree on."""
        if len(branches) == 1:
            return True if branches[0] is None else self._taken(branches[0])
        start, outcomes = dict(self.variables), []
        for branch in branches:
            self.variables = dict(start)
            if branch is not None:
                self.node(branch)
            # A branch that ends the script (a usage message) decides nothing of what follows.
            if self.ended:
                self.ended = False
                continue
            outcomes.append(self.variables)
        self.variables = merged(outcomes or [start], asked)
        return None

    def _taken(self, branch: Node) -> Truth:
        """Read a branch that is taken; one that only prints how to use the script and exits ends nothing."""
        before = len(self.commands)
        truth = self.node(branch)
        if self.ended and len(self.commands) == before:
            self.ended = False
        return truth

    def _case(self, node: Case) -> Truth:
        subject = self.expander.text(node.word)
        unset = isinstance(subject, Unread) and node.word.typed.lstrip("${").rstrip("}") in ("1", "0")
        if isinstance(subject, Unread) and not unset:
            bodies: list[Node | None] = [body for _, body in node.branches]
            if not any("*" in (word.typed for word in patterns) for patterns, _ in node.branches):
                bodies.append(None)
            return self._either(bodies, subject.missing)
        text = "" if unset else subject
        for patterns, body in node.branches:
            for pattern in patterns:
                if fnmatchcase(text[:200], self.expander.text(pattern)[:200]):
                    return self._taken(body)
        return True

    def _for(self, node: For) -> Truth:
        values: list[str] | None = None
        if node.words is not None:
            values = [text for word in node.words for text in self.expander.fields(word)]
        if values is None or any(isinstance(value, Unread) for value in values) or len(values) > MAX_ROUNDS:
            if node.name:
                self.variables[node.name] = _one_of(node.name, values or [])
            return self.node(node.body)
        for value in values:
            self.variables[node.name] = value
            self.node(node.body)
        return True

    def _while(self, node: While) -> Truth:
        asked: list[str] = []
        if self._truth(node.condition, asked) is False:
            return True
        return self._either([node.body, None], tuple(asked))

    def _command(self, command: Command) -> Truth:
        words = command.words
        place = 0
        while place < len(words) and _is_assignment(words[place]):
            place += 1
        name = words[place].plain if place < len(words) else None
        if name in ("[", "[[", "test"):
            ends = 1 if words[-1].plain in ("]", "]]") else 0
            return test_holds(words[place + 1 : len(words) - ends], self.expander)
        if words and words[0].typed == "((" and len(words) == 2:
            value = self.expander.text(words[1])
            return None if isinstance(value, Unread) else int(value) != 0
        if place == len(words):
            for word in words:
                self._assign(word)
            self._write(command, [])
            return True
        if name in _DECLARING:
            for word in words[place + 1 :]:
                if _is_assignment(word):
                    self._assign(word)
            return True
        saved = dict(self.variables)
        for word in words[:place]:
            self._assign(word)
        environment = {word.typed.partition("=")[0]: None for word in words[:place]}
        fields = [text for word in words[place:] for text in self.expander.fields(word)]
        truth = self._run(command, fields, environment)
        if place:
            for key in environment:
                if key in saved:
                    self.variables[key] = saved[key]
                else:
                    self.variables.pop(key, None)
        return truth

    def _run(self, command: Command, fields: list[str], environment: Mapping[str, None]) -> Truth:
        """One command with its words: builtins that matter here, functions, else it is listed."""
        if not fields:
            return True
        name = fields[0]
        if name in ("exit", "return"):
            self.ended = self.ended or name == "exit"
            return None
        if name in ("echo", "printf"):
            self._write(command, [name], _echoed(fields))
            return True
        if name == "set" and fields[1:2] == ["--"]:
            self.variables["@"] = tuple(fields[2:])
            return True
        if name in ("true", ":", "printf", "cd", "set", "wait", "sleep", "pip", "mkdir"):
            return True
        if name in ("break", "continue"):
            return None
        if name == "false":
            return False
        if name in ("read", "mapfile", "readarray", "unset", "getopts", "source", ".", "let", "shift"):
            return self._builtin(name, fields[1:])
        if name == "eval":
            if any(isinstance(word, Unread) for word in fields[1:]):
                return self._run(command, fields[1:], environment)
            self._nested(" ".join(fields[1:]))
            return None
        if name in self.functions and self.calls < MAX_CALLS:
            self.calls += 1
            saved = self.variables.get("@", ())
            self.variables["@"] = tuple(fields[1:])
            self.node(self.functions[name])
            self.variables["@"] = saved
            self.calls -= 1
            return None
        self._write(command, fields)
        here = self._here(command)
        if len(self.commands) < MAX_COMMANDS:
            plain = {key: value for key, value in self.variables.items() if key != "@"}
            self.commands.append(ShellCommand(tuple(fields), plain, dict(self.files), here))
        # A command that is not known may fail: "||" is for failures, which a launch that works has not.
        return None if name in ("grep", "command", "which", "type", "nvidia-smi", "((") else True

    def _builtin(self, name: str, words: list[str]) -> Truth:
        if name in ("source", "."):
            return True
        if name == "getopts":
            return False
        if name == "shift":
            arguments = self.variables.get("@", ())
            self.variables["@"] = arguments[1:] if isinstance(arguments, tuple) else ()
            return True
        for word in words:
            key = word.partition("=")[0]
            if re.fullmatch(r"[A-Za-z_]\w*", key):
                if name == "unset":
                    self.variables.pop(key, None)
                else:
                    self.variables[key] = Unread(f"${key}", (key,))
        return True

    def _nested(self, text: str) -> None:
        """A text that the shell would read again."""
        if self.calls >= MAX_CALLS or len(text) > 100_000:
            return
        self.calls += 1
        self.block(parse_shell(tokens_of(text)))
        self.calls -= 1

    def _here(self, command: Command) -> str | None:
        for operator, target in command.redirects:
            if isinstance(target, HereDocument):
                if target.quoted:
                    return target.body
                return self.expander.joined(pieces_of(target.body), target.body)
            if operator == "<<<":
                return self.expander.text(target)
        return None

    def _write(self, command: Command, fields: list[str], echoed: str | None = None) -> None:
        """Keep what ``cat > file <<END``, ``tee file <<END`` or ``echo -e "..." > file`` writes."""
        body = echoed if echoed is not None else self._here(command)
        if body is None or (fields and fields[0] not in ("cat", "tee", "sudo", "echo", "printf")):
            return
        targets = [
            (operator, self.expander.text(target))
            for operator, target in command.redirects
            if operator in (">", ">>", ">|") and isinstance(target, Word)
        ]
        if fields and fields[0] in ("tee", "sudo"):
            targets += [(">", word) for word in fields[1:] if not word.startswith("-")]
        for operator, target in targets:
            before = self.files.get(target, "") if operator == ">>" else ""
            self.files[target] = (before + body)[:MAX_FILE]

    def _assign(self, word: Word) -> None:
        """``NAME=value``, ``NAME+=value``, ``NAME=(...)``, ``NAME[i]=value``."""
        head = word.pieces[0]
        found = _ASSIGNMENT.match(head.text)
        assert found is not None
        name, index, plus = found.groups()
        if word.items is not None:
            items = tuple(text for item in word.items for text in self.expander.fields(item))
            old = self.variables.get(name, ()) if plus else ()
            self.variables[name] = (*(old if isinstance(old, tuple) else (old,)), *items)
            return
        rest = head.text[found.end() :]
        pieces = (
            *((Piece(PieceKind.TEXT, rest, False, rest),) if rest else ()),
            *word.pieces[1:],
        )
        value = self.expander.joined(pieces, word.typed.partition("=")[2]) if pieces else ""
        old_value = self.variables.get(name)
        if index is not None:
            if isinstance(old_value, tuple) and index.isdecimal() and int(index[:6]) < len(old_value):
                at = int(index[:6])
                self.variables[name] = (*old_value[:at], value, *old_value[at + 1 :])
            elif index.isdecimal() and isinstance(old_value, tuple | None):
                self.variables[name] = (*(old_value or ()), value)
            return
        if plus:
            if isinstance(old_value, tuple) and old_value:
                self.variables[name] = (old_value[0] + value, *old_value[1:])
                return
            value = _appended(name, old_value if isinstance(old_value, str) else "", value)
        self.variables[name] = value


def _one_of(name: str, values: list[str]) -> str:
    """The variable of a loop over words that are not all known: one of them where each can be told."""
    ways: list[tuple[str, ...]] = []
    for value in values:
        if isinstance(value, Undecided):
            ways += [(word,) for option in value.options for word in option]
        elif isinstance(value, Unread):
            return Unread(f"${name}", (name,))
        else:
            ways.append((value,))
    if not ways or len(ways) > MAX_ROUNDS or any(isinstance(way[0], Unread) for way in ways):
        return Unread(f"${name}", (name,))
    return Undecided(f"${name}", (name,), tuple(dict.fromkeys(ways)))


def _appended(name: str, old: str, more: str) -> str:
    """``X+=more``; what is undecided stays so, with the addition in each of its options."""
    if isinstance(old, Undecided) and not isinstance(more, Unread):
        options = tuple((*option, *more.split()) for option in old.options)
        return Undecided(str(old), old.missing, options)
    parts = [part for part in (old, more) if isinstance(part, Unread)]
    if parts:
        missing = tuple(dict.fromkeys(each for part in parts for each in part.missing))
        return Unread(f"${name}", missing, split_fields((old, more)))
    return old + more


def _echoed(fields: list[str]) -> str:
    """What ``echo`` and ``printf`` print, with their backslash letters."""
    words = [word for word in fields[1:] if word not in ("-e", "-n", "-ne", "-en", "-E")]
    return " ".join(words).replace("\\n", "\n").replace("\\t", "\t") + "\n"


def _is_assignment(word: Word) -> bool:
    if not word.pieces:
        return False
    head = word.pieces[0]
    return not head.quoted and head.kind is PieceKind.TEXT and _ASSIGNMENT.match(head.text) is not None

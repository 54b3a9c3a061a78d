"""Pasted shell lines to words, environment assignments, a framework and the size of the machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tracer.errors import ConfigError
from tracer.frameworks.launchers import LAUNCHERS, Counts, read_launcher
from tracer.frameworks.registry import framework_name

MAX_WORDS = 20_000
MAX_CHARACTERS = 500_000
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_PYTHON = re.compile(r"python[\d.]*$")
_WRAPPERS = ("sudo", "nohup", "time", "exec", "env", "bash", "sh", "export", "stdbuf", "trtllm-llmapi-launch")
_PROGRAMS = {
    "trtllm-serve": "tensorrt-llm",
    "trtllm-bench": "tensorrt-llm",
    "trtllm-eval": "tensorrt-llm",
    "quickstart_advanced.py": "tensorrt-llm",
    "sglang.launch_server": "sglang",
    "sglang.bench_one_batch": "sglang",
    "sglang.bench_offline_throughput": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "torchtitan.train": "torchtitan",
    "run_train.sh": "torchtitan",
    "run_train.py": "nanotron",
}


@dataclass(slots=True)
class LaunchLine:
    """What pasted lines say: the framework, its flags, the environment set, and process counts."""

    framework: str | None = None
    words: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    launcher: str | None = None


def read_lines(argv: str | Sequence[str]) -> LaunchLine:
    """Flags, or whole shell lines, taken apart; nothing is run and no file is opened.

    Continuations, comments, quotes, ``NAME=value`` and ``export`` are understood, and ``$NAME`` where
    the lines set it. Of several commands the one that launches a known framework counts.

    Raises:
        ConfigError: for quotes that do not close, or more than ``MAX_WORDS`` words.
    """
    if isinstance(argv, str):
        commands = _commands(argv)
    else:
        words = [str(word) for word in argv]
        commands = _commands(words[0]) if len(words) == 1 and re.search(r"\s", words[0]) else [words]
    if sum(map(len, commands)) > MAX_WORDS:
        raise ConfigError("flags", f"{len(argv)} characters", f"are more than {MAX_WORDS} words", "cut them")
    line = LaunchLine()
    for command in commands:
        _read_command(command, line)
    return line


def _commands(text: str) -> list[list[str]]:
    """Words of each command; a line that starts with a flag goes on the command before it."""
    if len(text) > MAX_CHARACTERS:
        raise ConfigError("flags", text, f"are more than {MAX_CHARACTERS} characters", "cut them")
    text = re.sub(r"\\\r?\n", " ", text.strip().removesuffix("\\"))
    commands: list[list[str]] = []
    for line in _lines(text):
        for command in _split(_words(line)):
            if commands and command[0].startswith("-"):
                commands[-1].extend(command)
            else:
                commands.append(command)
    return commands


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ConfigError("flags", line, f"cannot be split into words: {error}", "mend the quotes") from error


def _lines(text: str) -> Iterator[str]:
    """Lines of a shell text without comments; a newline inside quotes ends none."""
    line: list[str] = []
    quote, escaped, comment = "", False, False
    for letter in text:
        if letter == "\n" and not quote:
            yield "".join(line)
            line, comment, escaped = [], False, False
            continue
        if comment or (letter == "#" and not quote and not escaped and (not line or line[-1].isspace())):
            comment = True
            continue
        line.append(letter)
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif letter == quote:
            quote = ""
        elif letter in "'\"" and not quote:
            quote = letter
    if quote or escaped:
        raise ConfigError("flags", "".join(line), "has a quote that does not close", "close it, or drop it")
    yield "".join(line)


def _split(words: list[str]) -> list[list[str]]:
    """Commands between ``;``, ``&&``, ``||``, ``&``; what follows a pipe is not a launch."""
    commands: list[list[str]] = [[]]
    piped = False
    for word in words:
        bare = word.rstrip(";")
        if word in ("&&", "||", "&", ";"):
            commands.append([])
            piped = False
        elif word == "|":
            piped = True
        elif not piped and bare not in ("(", ")", "") and not re.match(r"\w+=\($", bare):
            commands[-1].append(bare)
            if bare != word:
                commands.append([])
    return [command for command in commands if command]


def _read_command(words: list[str], line: LaunchLine) -> None:
    """Read one command; flags without a known program count until one with a known program comes."""
    place, framework, counts, launcher = 0, None, Counts(), None
    words = [_filled(word, line.env) for word in words]
    while place < len(words) and not words[place].startswith("-"):
        word = words[place]
        base = word.rsplit("/", 1)[-1]
        assignment = _ASSIGNMENT.fullmatch(word)
        place += 1
        if assignment and framework is None:
            line.env[assignment.group(1)] = assignment.group(2)
            words[place:] = [_filled(later, line.env) for later in words[place:]]
            continue
        if _PYTHON.match(base) and words[place : place + 1] == ["-m"]:
            place += 1
            continue
        if base in LAUNCHERS and not (base == "deepspeed" and launcher == base):
            found, taken = read_launcher(base, words[place:])
            place, counts, launcher = place + taken, counts.under(found), base
            framework = "deepspeed" if base == "deepspeed" else framework
            continue
        named = _PROGRAMS.get(base) or framework_name(base) or _by_script(base)
        if named is not None:
            framework = named
        elif base not in _WRAPPERS and not _PYTHON.match(base) and (framework or launcher):
            break
    if framework is not None or launcher is not None or line.framework is None:
        _keep(line, framework, words[place:], counts, launcher)


def _keep(
    line: LaunchLine, framework: str | None, words: list[str], counts: Counts, launcher: str | None
) -> None:
    if framework is None and launcher is None:
        line.words.extend(words)
        return
    line.framework, line.counts, line.launcher = framework, counts, launcher
    line.words = [*line.words, *words]


def _by_script(base: str) -> str | None:
    """Megatron's training scripts are known by their names (pretrain_gpt.py, train_rl.py)."""
    return "megatron" if re.fullmatch(r"pretrain_\w+\.py", base) else None


def _filled(word: str, env: dict[str, str]) -> str:
    """A word with the variables that the lines set filled in, one level deep."""
    return _VARIABLE.sub(lambda found: env.get(found.group(1) or found.group(2), found.group(0)), word)[
        :100_000
    ]

"""The one door: whatever was pasted to the processes it launches. Nothing is run, opened or fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from tracer.errors import ConfigError
from tracer.frameworks.launch.collect import Collector
from tracer.frameworks.launch.pages import code_blocks
from tracer.frameworks.launch.programs import tool_of_overrides
from tracer.frameworks.launch.result import Launch
from tracer.frameworks.launch.texts import CONFIG_SUFFIXES, SHELL_SUFFIXES, check_text, kind_of, unit_commands
from tracer.frameworks.launch.words import MAX_WORDS
from tracer.frameworks.launchers import Counts
from tracer.frameworks.registry import framework
from tracer.frameworks.unread import Unread

PAGE_SUFFIXES = (".md", ".rst", ".markdown", ".mdx")


def read_launch(
    given: str | Sequence[str],
    *,
    framework: str | None = None,
    filename: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Launch:
    """What a paste launches: a shell script or line, words already split, a manifest or a config.

    ``framework`` is a name that the caller gives, else it is found. ``filename`` tells the kind of the
    text by its ending. ``settings`` give variables that nothing in the text sets (``--set NNODES=4``).

    >>> launch = read_launch("torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2")
    >>> launch.frameworks, launch.processes[0].counts.gpus
    (('megatron',), 8)

    Raises:
        ConfigError: for a text that is not read, and where nothing in it launches a framework.
    """
    hint = _hint(framework)
    reader = Collector(hint, dict(settings or {}), given if isinstance(given, str) else " ".join(given))
    if not isinstance(given, str):
        words = [str(word) if type(word) is not Unread else word for word in given]
        if len(words) == 1 and re.search(r"\s", words[0]):
            return read_launch(words[0], framework=framework, filename=filename, settings=settings)
        if len(words) > MAX_WORDS:
            raise ConfigError("flags", f"{len(words)} words", f"are more than {MAX_WORDS} words", "cut them")
        reader.given.append("command")
        if _are_overrides(words):
            reader.loose.append((words, {}))
        else:
            reader.command(words, {}, Counts(), {})
        return reader.launch()
    check_text(given, filename)
    blocks, outside = code_blocks(given) if _may_be_page(filename) else ([], True)
    if len(blocks) == 1 and filename is None and not outside:
        given = blocks[0].body
    elif blocks:
        reader.page(blocks)
        return reader.launch()
    elif filename is not None and PurePath(filename).suffix.lower() in PAGE_SUFFIXES:
        first = given.strip().splitlines()[:1]
        raise ConfigError(
            filename, first[0] if first else "", "has no code block", "give the launch line alone"
        )
    unit = unit_commands(given)
    if unit:
        reader.given.append("systemd unit")
        reader.shell(unit, {}, Counts())
        return reader.launch()
    kind = kind_of(given, filename)
    if kind in CONFIG_SUFFIXES:
        reader.documents(given, kind, filename or "text")
    elif "\n" not in given.strip() and _are_overrides(given.split()):
        reader.given.append("overrides")
        reader.loose.append((given.split(), {}))
    else:
        reader.given.append("shell script" if "\n" in given.strip() else "command line")
        reader.shell(given, {}, Counts())
    return reader.launch()


def _are_overrides(words: Sequence[str]) -> bool:
    """Whether words are ``key=value`` throughout and a tool's: a shell would take them as variables."""
    return all("=" in word and not word.startswith("-") for word in words) and (
        tool_of_overrides(words) is not None
    )


def _may_be_page(filename: str | None) -> bool:
    """Whether a text may be a page of prose with code in it: no script or configuration by its name."""
    suffix = PurePath(filename).suffix.lower() if filename else ""
    return suffix not in (*CONFIG_SUFFIXES, *SHELL_SUFFIXES, ".py", ".ipynb")


def _hint(name: str | None) -> str | None:
    if name is None:
        return None
    return framework(name).name

"""The one door: whatever was pasted to the processes it launches. Nothing is run, opened or fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tracer.errors import ConfigError
from tracer.frameworks.launch.collect import Collector
from tracer.frameworks.launch.result import Launch
from tracer.frameworks.launch.texts import CONFIG_SUFFIXES, check_text, code_of, kind_of
from tracer.frameworks.launch.words import MAX_WORDS
from tracer.frameworks.launchers import Counts
from tracer.frameworks.registry import framework
from tracer.frameworks.unread import Unread


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
        reader.command(words, {}, Counts(), {})
        return reader.launch()
    check_text(given, filename)
    given, fenced = code_of(given, filename)
    if fenced:
        reader.given.append("Markdown")
    kind = kind_of(given, None if fenced else filename)
    if kind in CONFIG_SUFFIXES:
        reader.documents(given, kind, filename or "text")
    else:
        reader.given.append("shell script" if "\n" in given.strip() else "command line")
        reader.shell(given, {}, Counts())
    return reader.launch()


def _hint(name: str | None) -> str | None:
    if name is None:
        return None
    return framework(name).name

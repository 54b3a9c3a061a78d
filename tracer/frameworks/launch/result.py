"""What was pasted: the processes it launches, and how it was recognised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tracer.errors import ConfigError
from tracer.frameworks.launchers import Counts
from tracer.frameworks.notes import Note


@dataclass(frozen=True, slots=True)
class Process:
    """One launch of one framework, as far as the text says.

    ``words`` are its flags, ``tables`` settings that a file or overrides give by the framework's own names.
    ``role`` tells pools apart (``prefill``, ``actor``). ``pods`` are the GPUs that a manifest grants to one
    copy, and its copies; ``config`` is a file the launch names and that was not given here;
    ``model`` a model that a tool's own settings name.
    """

    framework: str
    words: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    launcher: str | None = None
    role: str = ""
    tables: Mapping[str, object] | None = None
    pods: tuple[int, int] | None = None
    config: str = ""
    adapter: str = ""
    notes: tuple[Note, ...] = ()
    from_file: bool = False
    model: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything read from one paste.

    ``given`` says what it was, in the order found (``"shell script"``, ``"srun"``, ``"bash -c"``). On a
    ``page`` of prose the launches are alternatives: one that is ``refused`` leaves the others to be read.
    """

    given: tuple[str, ...]
    processes: tuple[Process, ...]
    seen: tuple[str, ...] = ()
    page: bool = False
    refused: tuple[ConfigError, ...] = ()

    @property
    def frameworks(self) -> tuple[str, ...]:
        """Every framework that is launched, each once."""
        return tuple(dict.fromkeys(process.framework for process in self.processes))

    def __str__(self) -> str:
        return ", ".join(self.given)

"""Runs one input and judges it: no traceback, no long wait, under 1 GB, every refusal by name.

Time is counted in processor seconds, and a shared machine gives several times less work for one: an input
that should take 2 s at most fails at ``MAX_CPU_SECONDS``. The watchdog interrupts one that goes on. Memory
is bounded by the address space of the process: what would be allocated fails at once, touched or not.
"""

from __future__ import annotations

import contextlib
import io
import re
import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from app.cli import main
from tracer.errors import ConfigError

MAX_CPU_SECONDS = 8.0
MAX_BYTES = 1 << 30
#: An input still running after so many processor seconds is interrupted where it stands.
WATCHDOG_SECONDS = 20.0
FIELD_NAMED = re.compile(r"^error: \S.* .+; .+", re.DOTALL)
CLICK_NAMED = re.compile(
    r"^(?:Usage: .*\n)?Error: (?:Invalid value for '?[^:]+|No such option:? "
    r"|Missing (?:argument|option|parameter)"
    r"|Option '|Got unexpected extra argument|No such command)",
    re.DOTALL,
)


class TooLongError(Exception):
    """The watchdog's: the input was still running."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


def judged(run: Callable[[], Any]) -> Any:
    """What ``run`` returns; fails when it takes too long."""
    start = time.process_time()
    try:
        with _watchdog():
            return run()
    finally:
        spent = time.process_time() - start
        assert spent < MAX_CPU_SECONDS, f"took {spent:.1f} s of processor time"


def accepted(run: Callable[[], Any]) -> Any:
    """What ``run`` returns, or None where it refuses its input by name."""
    try:
        return judged(run)
    except ConfigError as error:
        check_refusal(error)
        return None


def check_refusal(error: ConfigError) -> None:
    """A refusal names the field, the rule and a fix, and is no longer than a person reads."""
    assert error.field, error
    assert error.rule, error
    assert error.fix, error
    assert len(str(error)) < 4_000, str(error)[:200]


def command(*arguments: str) -> Answer:
    """A command line, run in this process: ends with 0, 1, 130, or 2, which says what was wrong."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            judged(lambda: main(list(arguments)))
        except SystemExit as stop:
            code = int(stop.code or 0)
    answer = Answer(code, out.getvalue(), err.getvalue())
    assert code in (0, 1, 2, 130), answer
    if code == 2:
        said = "\n".join(
            line for line in answer.err.splitlines() if not line.startswith(("warning:", "note:"))
        )
        assert FIELD_NAMED.match(said) or CLICK_NAMED.match(said), (arguments, answer.err[:1000])
    assert "Traceback" not in answer.err
    return answer


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """Let the process map 1 GB more than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_mapped_bytes() + MAX_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _mapped_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


@contextlib.contextmanager
def _watchdog() -> Iterator[None]:
    def stop(signum: int, frame: object) -> None:
        raise TooLongError(f"still running after {WATCHDOG_SECONDS:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, WATCHDOG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)

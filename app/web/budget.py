"""A budget of processor time per question: what passes it is stopped, and whoever asked is told.

What a question costs is estimated where it can be before it starts. This is the net below: a question whose
cost nobody foresaw must not keep a worker from all others.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tracer.errors import ConfigError

SECONDS = 20.0
LOOKS_PER_BUDGET = 40
Found = TypeVar("Found")


class OverBudgetError(BaseException):
    """Raised inside a question's thread; no handler of the engine's takes it for an error of its own."""


@dataclass(slots=True)
class _Question:
    """One question that is being answered, and the clock of its thread."""

    thread: int
    clock: Callable[[], float]
    started: float
    stopped: bool = False


@dataclass(slots=True)
class Budget:
    """Answers questions in the thread that asks, each for so many ``seconds`` of processor time at most."""

    seconds: float = SECONDS
    _running: dict[int, _Question] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _watched: int = 0

    def hold(self, answer: Callable[[], Found]) -> Found:
        """What ``answer`` returns.

        Raises:
            ConfigError: when it takes longer than the budget.
        """
        clock = thread_clock()
        question = _Question(threading.get_ident(), clock, clock())
        self._watch()
        try:
            with self._lock:
                self._running[question.thread] = question
            try:
                return answer()
            finally:
                with self._lock:
                    del self._running[question.thread]
                    if question.stopped:
                        # Not raised yet, it would be raised in the next question of this thread.
                        _raise_in(question.thread, None)
        except OverBudgetError:
            rule = f"took more than the {self.seconds:g} s of processor time that a question may take here"
            fix = "ask for fewer ranks, experts or layers, or ask the command line, which has no such limit"
            raise ConfigError("address", "this", rule, fix) from None

    def _watch(self) -> None:
        """Start the watching thread, once in each process: a fork takes no threads along."""
        with self._lock:
            if self._watched == os.getpid():
                return
            self._watched = os.getpid()
        threading.Thread(target=self._look, daemon=True, name="budget").start()

    def _look(self) -> None:
        while True:
            time.sleep(self.seconds / LOOKS_PER_BUDGET)
            with self._lock:
                for question in self._running.values():
                    if not question.stopped and question.clock() - question.started > self.seconds:
                        question.stopped = True
                        _raise_in(question.thread, OverBudgetError)


def thread_clock() -> Callable[[], float]:
    """A clock of the processor time of this thread that others can read, or of time where there is none."""
    clock_id = getattr(time, "pthread_getcpuclockid", None)
    if clock_id is None:
        return time.monotonic
    own: int = clock_id(threading.get_ident())
    return lambda: time.clock_gettime(own)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Have a thread raise an error at its next step in Python, or take back one it has not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )

"""The pytest plugin: what it adds to a run that does not use it, beside an empty run without it.

Both runs load one plugin by name, the baseline an empty file: pytest reads the entry points of everything
installed for that, which it does in every user's run, plugin or not.

Processor time, not the clock: a busy machine makes the clock of a run wander by more than the bound.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BOUND_S = 0.020
ROUNDS = 25
NOTHING = "plugin_of_nothing"


@dataclass(frozen=True, slots=True)
class Added:
    """Least processor seconds of a run with the plugin and of one without; the difference has a bound."""

    with_s: float
    without_s: float

    @property
    def holds(self) -> bool:
        """Whether less than the bound is added."""
        return self.with_s - self.without_s < BOUND_S

    def __str__(self) -> str:
        added = 1e3 * (self.with_s - self.without_s)
        verdict = "ok" if self.holds else "MISSED"
        return (
            f"{'pytest with the plugin unused, against an empty run':<58} {added:>+8.1f} ms "
            f"(< {1e3 * BOUND_S:g} ms {verdict})   ours {1e3 * self.with_s:.0f} ms, "
            f"baseline {1e3 * self.without_s:.0f} ms"
        )


def run(rounds: int = ROUNDS) -> Iterator[Added]:
    """One empty test, run with and without the plugin in turns; no other plugin is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_empty.py").write_text("def test_empty(): pass\n", encoding="utf-8")
        Path(folder, f"{NOTHING}.py").touch()
        best = {True: float("inf"), False: float("inf")}
        for _ in range(rounds):
            for ours in best:
                best[ours] = min(best[ours], _seconds(folder, ours=ours))
    yield Added(best[True], best[False])


def _seconds(folder: str, *, ours: bool) -> float:
    plugin = "pytest_tokentrip" if ours else NOTHING
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin]
    # As for a user: modules are compiled in the first run and read from a cache after it.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPYCACHEPREFIX": f"{folder}/cache"}
    before = _spent()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return _spent() - before


def _spent() -> float:
    """Processor seconds of all finished children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

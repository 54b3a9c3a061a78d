"""What people paste: each file of the tests read to its meshes, beyond start, in less than 50 ms."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.ratios import Ratio
from tracer.errors import ConfigError
from tracer.frameworks.launch.door import read_launch
from tracer.frameworks.opening import Asked, meshes_of

FILES = Path(__file__).parents[1] / "tests" / "data" / "launches"
ROUNDS = 5
AT_MOST_S = 0.050


def seconds(text: str) -> float:
    """The best of some rounds: a text to its meshes, or to its refusal."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        with contextlib.suppress(ConfigError):
            meshes_of(read_launch(text), Asked())
        best = min(best, time.perf_counter() - started)
    return best


def run() -> Iterator[Ratio]:
    """The slowest file of all, against the bound."""
    times = {path.name: seconds(path.read_text()) for path in FILES.iterdir() if path.name != "expected.json"}
    slowest = max(times, key=lambda name: times[name])
    yield Ratio(f"slowest of {len(times)} launches ({slowest})", times[slowest], AT_MOST_S, 1.0, True)

"""What people paste: every file of the tests read to its meshes, beyond start, each below 50 ms."""

from __future__ import annotations

import time
from pathlib import Path

from tracer.errors import ConfigError
from tracer.frameworks.launch.door import read_launch
from tracer.frameworks.opening import Asked, meshes_of

FILES = Path(__file__).parents[1] / "tests" / "data" / "launches"
ROUNDS = 5
AT_MOST_MS = 50.0


def milliseconds(text: str) -> float:
    """The best of some rounds: read the text to its meshes, or to its refusal."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        try:
            meshes_of(read_launch(text), Asked())
        except ConfigError:
            pass
        best = min(best, (time.perf_counter() - started) * 1e3)
    return best


def main() -> int:
    """Print the slowest files; the number that are over the bound."""
    times = {path.name: milliseconds(path.read_text()) for path in FILES.iterdir() if path.suffix != ".json"}
    slowest = sorted(times.items(), key=lambda item: -item[1])
    for name, spent in slowest[:5]:
        print(f"{spent:8.1f} ms  {name}")
    over = [name for name, spent in slowest if spent > AT_MOST_MS]
    print(f"{len(times)} files, {len(over)} over {AT_MOST_MS:.0f} ms")
    return len(over)


if __name__ == "__main__":
    raise SystemExit(main())

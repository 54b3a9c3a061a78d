"""``make bench``: every ratio of every ``bench_*.py`` here; a missed bound ends in exit code 1."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from benchmarks.ratios import machine


def main() -> int:
    """Run the files named on the command line, or all of them; print each ratio and its bound."""
    print(machine())
    names = sys.argv[1:] or sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    missed = 0
    for name in names:
        for ratio in import_module(f"benchmarks.{name}").run():
            print(ratio, flush=True)
            missed += not ratio.holds
    print(f"{missed} bounds missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

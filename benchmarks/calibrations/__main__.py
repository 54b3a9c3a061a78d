"""``python -m benchmarks.calibrations FOLDER [KIND ...]``: errors on rows, shapes and systems left out.

FOLDER holds the measured tables, which do not ship (docs/sources.md says whose they are). Nothing is
written; ``scripts/fit_calibrations.py`` prints the same and stores the fits. Ends in 1 when a kind misses
its bound: a median of 10 %, and 25 % at the ninetieth percentile.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.calibrations.report import errors_of
from benchmarks.calibrations.rows import read_rows
from benchmarks.calibrations.specs import SPECS
from benchmarks.calibrations.validate import Prepared

MEDIAN, P90 = 0.10, 0.25


def main() -> int:
    """Cross-validate each kind and count those beyond the bounds."""
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    kinds = sys.argv[2:] or list(SPECS)
    rows = read_rows(Path(sys.argv[1]), kinds)
    missed = []
    for kind in kinds:
        found = errors_of(kind, SPECS[kind], Prepared.of(rows[kind]))
        print(found, flush=True)
        if found.rows[0] > MEDIAN or found.rows[1] > P90:
            missed.append(kind)
    print(f"bounds missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

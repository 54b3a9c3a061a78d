#!/usr/bin/env python3
"""Fit the shipped calibrations to a folder of measured tables, which do not ship.

    python scripts/fit_calibrations.py FOLDER [--out FOLDER] [--kind KIND ...] [--date YYYY-MM-DD]

FOLDER holds gemm.parquet, context_attention.parquet and so on, nccl.json and deepep.json. Every kind is
fitted on all its rows and written to tracer/data/calibrations/; printed and stored beside it are the
errors on rows, shapes and whole systems that a fit had not seen. Needs numpy and pyarrow. The same tables
give the same files.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.calibrations.report import KindErrors, errors_of  # noqa: E402
from benchmarks.calibrations.rows import read_rows  # noqa: E402
from benchmarks.calibrations.specs import SPECS  # noqa: E402
from benchmarks.calibrations.validate import Prepared, fit_kind  # noqa: E402

SOURCE = {
    "repository": "ai-dynamo/aiconfigurator",
    "commit": "095f58a5",
    "path": "aic-core/src/aiconfigurator_core/systems/data",
    "licence": "Apache-2.0",
}
KERNELS = dict.fromkeys(("h100", "h200", "b200"), "TensorRT-LLM 1.3.0rc20")
VERSIONS = {
    "nccl": dict.fromkeys(KERNELS, "NCCL 2.29.2"),
    "deepep": {
        "h100": "DeepEP of SGLang 0.5.6.post2",
        "h200": "DeepEP of SGLang 0.5.12",
        "b200": "DeepEP of SGLang 0.5.12",
    },
}


def main() -> int:
    """Fit, validate, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "tracer" / "data" / "calibrations")
    parser.add_argument("--kind", action="append", choices=sorted(SPECS))
    parser.add_argument("--date", default="2026-12-01", help="day of the fit, as it is stored")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows = read_rows(given.folder, given.kind)
    for kind in given.kind or SPECS:
        data = Prepared.of(rows[kind])
        errors = errors_of(kind, SPECS[kind], data)
        print(errors, flush=True)
        stored = _stored(kind, data, errors, len(rows[kind]), given.date)
        (given.out / f"{kind}.json").write_text(_compact(stored), encoding="utf-8")
    return 0


def _stored(kind: str, data: Prepared, errors: KindErrors, read: int, day: str) -> dict[str, Any]:
    fitted = fit_kind(kind, SPECS[kind], data)
    for fit in fitted["fits"]:
        median, p90 = errors.of(fit["system"], fit["variant"])
        fit["error"], fit["error_p90"] = round(median, 3), round(p90, 3)
    return {
        "kind": kind,
        "source": SOURCE,
        "date": day,
        "rows": {"read": read, "used": len(data.rows)},
        "versions": VERSIONS.get(kind, KERNELS),
        "left_out": {"rows": _rounded(errors.rows), "shapes": _rounded(errors.shapes)},
        "transfer": {
            reach: {"error": round(pair[0], 3), "error_p90": round(pair[1], 3)}
            for reach, pair in errors.transfers().items()
        },
        "follows": errors.follows,
        "fits": fitted["fits"],
        "tables": fitted["tables"],
    }


def _rounded(pair: tuple[float, float]) -> list[float]:
    """Median and ninetieth percentile as they are stored."""
    return [round(each, 3) for each in pair]


def _compact(stored: dict[str, Any]) -> str:
    """JSON with one fit and one table a line, so that a difference can be read."""
    lines = ["{"]
    for key in ("kind", "source", "date", "rows", "versions", "left_out", "transfer", "follows"):
        lines.append(f" {json.dumps(key)}: {_dense(stored[key])},")
    lines.append(' "fits": [\n  ' + ",\n  ".join(_dense(each) for each in stored["fits"]) + "\n ],")
    groups = (
        f"  {json.dumps(name)}: [\n   " + ",\n   ".join(_dense(each) for each in tables) + "\n  ]"
        for name, tables in stored["tables"].items()
    )
    lines.append(' "tables": {\n' + ",\n".join(groups) + "\n }")
    return "\n".join(lines) + "\n}\n"


def _dense(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    sys.exit(main())

"""Dumps of a large job, made here: reading them, recovering the layout and naming the late rank.

Beside plain ``pickle.load`` of the same files, which tells nothing yet and trusts the file. 10,000 ranks of
2,000 entries take about 3 GB of temporary disk; ``python -m benchmarks.bench_runs 10000`` makes them and
prints seconds and memory, ``make bench`` takes fewer.
"""

from __future__ import annotations

import pickle
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.ratios import Ratio, interleave
from tracer.frameworks.opening import from_flags
from tracer.runs.report import RunReport, examine_files

ENTRIES = 2_000
RANKS = 3_000
AT_MOST = 0.5
FAMILIES = {
    "tp": "TENSOR_MODEL_PARALLEL_GROUP",
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    "dp-cp": "DATA_PARALLEL_GROUP_WITH_CP",
    "tp-pp": "MODEL_PARALLEL_GROUP",
    "tp-cp": "TENSOR_AND_CONTEXT_PARALLEL_GROUP",
    "tp-dp-cp": "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP",
}
HIDDEN, ROWS, TP, PP = 4096, 512, 8, 5
DONE = 50_000


def make_dumps(folder: Path, ranks: int, late: int) -> None:
    """One dump a rank of a hung job of TP 8 and PP 5; rank ``late`` lacks the last gather of its TP group."""
    flags = f"--tensor-model-parallel-size {TP} --pipeline-model-parallel-size {PP} --sequence-parallel"
    groups = from_flags("megatron", flags, gpus=ranks).framework_groups
    named: list[dict[str, tuple[str, str, list[int]]]] = [{} for _ in range(ranks)]
    number = 100_000
    for family, description in FAMILIES.items():
        for members in groups[family]:
            for rank in members:
                named[rank][family] = (str(number), description, members)
            number += 1
    world = f"[{', '.join(map(str, range(ranks)))}]"
    entries = {hung: pickle.dumps(_entries(hung), 2)[2:-1] for hung in (True, False)}
    for rank in range(ranks):
        own = named[rank]
        body = entries[rank != late]
        for family, (name, _, _) in own.items():
            body = body.replace(_mark(family).encode(), name.encode())
        config: dict[str, Any] = {"0": {"name": "0", "desc": "default_pg", "ranks": world}}
        config |= {
            name: {"name": name, "desc": text, "ranks": str(members)} for name, text, members in own.values()
        }
        status = {"0": _status(10, 10)} | {
            str(place): _status(DONE + (family == "tp" and rank != late), DONE)
            for place, family in enumerate(own, 1)
        }
        head = {"version": "2.9", "pg_config": config, "nccl_version": "2.27.3", "pg_status": status}
        data = b"\x80\x02}(" + b"".join(
            _text(key) + pickle.dumps(value, 2)[2:-1] for key, value in head.items()
        )
        (folder / f"dump_{rank}").write_bytes(data + _text("entries") + body + b"u.")


def _mark(family: str) -> str:
    return f"@{list(FAMILIES).index(family):05}"


def _status(put: int, done: int) -> dict[str, int]:
    return {
        "last_enqueued_collective": put, "last_started_collective": -1, "last_completed_collective": done,
    }  # fmt: skip


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _entries(hung: bool) -> list[dict[str, Any]]:
    """Gathers and sums over TP, all completed but, in a hung rank, the last."""
    kinds = (("_all_gather_base", ROWS, ROWS * TP), ("_reduce_scatter_base", ROWS * TP, ROWS))
    count = ENTRIES - (not hung)
    return [
        {
            "record_id": i, "pg_id": 1, "process_group": (_mark("tp"), FAMILIES["tp"]),
            "thread_name": "python3", "thread_id": "1", "p2p_seq_id": 0, "op_id": i,
            "collective_seq_id": DONE + 2 - ENTRIES + i, "profiling_name": f"nccl:{kinds[i % 2][0]}",
            "time_created_ns": 1_758_610_505_000_000_000 + 1000 * i,
            "input_sizes": [[kinds[i % 2][1], 1, HIDDEN]], "input_dtypes": ["BFloat16"],
            "output_sizes": [[kinds[i % 2][2], 1, HIDDEN]], "output_dtypes": ["BFloat16"],
            "state": "completed" if i < ENTRIES - 1 else "scheduled",
            "time_discovered_started_ns": None, "time_discovered_completed_ns": None,
            "retired": i < ENTRIES - 1, "timeout_ms": 600_000, "is_p2p": False,
        }
        for i in range(count)
    ]  # fmt: skip


def check(report: RunReport, late: int) -> None:
    """Fail unless the layout is the one that was made and the late rank alone is named."""
    sizes = report.layout.sizes
    assert (sizes["tp"], sizes["pp"]) == (TP, PP), sizes
    assert not report.group_differences, report.group_differences
    assert [suspect.rank for suspect in report.blame.suspects] == [late], report.blame.suspects


def run(ranks: int = RANKS) -> Iterator[Ratio]:
    """Ours on all files, and plain pickle on every tenth, ten times."""
    with tempfile.TemporaryDirectory() as folder:
        make_dumps(Path(folder), ranks, late=ranks // 3)
        files = sorted(Path(folder).iterdir())[::10]

        def plain() -> None:
            for file in files:
                with file.open("rb") as raw:
                    pickle.load(raw)

        name = f"{ranks:,} dumps read, recovered, blamed / a tenth unpickled"
        yield interleave(
            name,
            lambda: check(examine_files([folder]), ranks // 3),
            plain,
            rounds=1,
            at_most=10 * AT_MOST,
        )


def main() -> None:
    """Make as many dumps as asked, examine them once, and print seconds and memory."""
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else RANKS
    with tempfile.TemporaryDirectory() as folder:
        make_dumps(Path(folder), ranks, late=ranks // 3)
        start = time.perf_counter()
        report = examine_files([folder])
        seconds = time.perf_counter() - start
        check(report, ranks // 3)
        # Asked of 10,000 ranks: less than 60 s and 2 GB.
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        why = report.blame.suspects[0].why
        print(f"{ranks:,} ranks: {seconds:.1f} s of 60, {kilobytes / 1e6:.2f} GB of 2; {why}")


if __name__ == "__main__":
    main()

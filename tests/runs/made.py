"""Dumps made for tests, in the form that PyTorch's Flight Recorder writes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "runs"
FAULTED = {"megatron-a": [12, 14], "megatron-b": [9, 14]}

Op = tuple[str, str, list[int], list[int]]
"""Group name, operation name, input shape, output shape."""


def entry(place: int, op: Op, group: dict[str, Any], number: int, **more: Any) -> dict[str, Any]:
    """One entry; sequence numbers are the caller's, in ``more``."""
    name, what, given, got = op
    return {
        "record_id": place, "pg_id": number, "process_group": (name, group["desc"]), "op_id": place,
        "profiling_name": f"nccl:{what}", "time_created_ns": 1_000_000_000 + place,
        "input_sizes": [given], "input_dtypes": ["BFloat16"],
        "output_sizes": [got], "output_dtypes": ["BFloat16"],
        "state": "scheduled", "retired": False, "p2p_seq_id": 0, "collective_seq_id": place + 1,
        "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "timeout_ms": 600_000,
        "is_p2p": what.startswith(("send", "recv")),
    } | more  # fmt: skip


def dump(
    groups: dict[str, tuple[str, list[int]]],
    ops: list[tuple[Op, dict[str, Any]]],
    status: dict[str, tuple[int, int]],
) -> dict[str, Any]:
    """A dump: groups by name (description, members), operations with what differs, (enqueued, completed)."""
    config = {
        name: {"name": name, "desc": text, "ranks": str(members)} for name, (text, members) in groups.items()
    }
    numbers = {name: place for place, name in enumerate(groups)}
    return {
        "version": "2.9",
        "pg_config": config,
        "nccl_version": "2.27.3",
        "pg_status": {
            str(numbers[name]): {
                "last_enqueued_collective": put,
                "last_started_collective": -1,
                "last_completed_collective": done,
            }
            for name, (put, done) in status.items()
        },
        "entries": [
            entry(place, op, config[op[0]], numbers[op[0]], **more) for place, (op, more) in enumerate(ops)
        ],
    }  # fmt: skip


def write(folder: Path, dumps: dict[int, dict[str, Any]]) -> Path:
    """One pickle a rank."""
    folder.mkdir(exist_ok=True)
    for rank, each in dumps.items():
        (folder / f"dump_{rank}").write_bytes(pickle.dumps(each, 2))
    return folder

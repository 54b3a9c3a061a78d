"""Record a small run on CPUs (PyTorch, gloo): one Flight Recorder dump a rank, as pickle and as JSON.

    python scripts/record_run.py FOLDER [--late RANK]

Needs PyTorch, which the project does not. Four ranks in a DeviceMesh of dp_shard 2 and tp 2 gather and sum
rows; with ``--late`` one rank stays away from the last collective, and the others record that they wait.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch._C import _distributed_c10d as recorder
from torch.distributed.device_mesh import init_device_mesh

WORLD, ROWS, HIDDEN, LAYERS = 4, 8, 64, 3


def work(rank: int, folder: Path, late: int | None, port: int) -> None:
    """One rank: layers of gathers and sums over tp, weights gathered over dp_shard, then the dump."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TORCH_FR_BUFFER_SIZE="400")
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_shard", "tp"))
    tp, shard = mesh.get_group("tp"), mesh.get_group("dp_shard")
    rows, whole = torch.ones(ROWS, HIDDEN), torch.ones(2 * ROWS, HIDDEN)
    weights, piece = torch.ones(2 * 1000), torch.ones(1000)
    for _ in range(LAYERS):
        dist.all_gather_into_tensor(weights, piece, group=shard)
        for _ in range(2):
            dist.all_gather_into_tensor(whole, rows, group=tp)
            dist.reduce_scatter_tensor(rows, whole, group=tp)
    dist.barrier()
    if rank != late:
        dist.all_reduce(rows, group=tp, async_op=True)
    time.sleep(2 if late is not None else 0.5)
    (folder / f"rank_{rank}.json").write_bytes(recorder._dump_fr_trace_json())
    # Without stack traces: they hold paths of the machine.
    (folder / f"rank_{rank}.pickle").write_bytes(recorder._dump_fr_trace(True, False, False))
    os._exit(0)  # a rank that waits for ever cannot leave the group


def main() -> None:
    """Start the ranks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--late", type=int, choices=range(WORLD))
    parser.add_argument("--port", type=int, default=29_511)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    mp.spawn(work, (given.folder, given.late, given.port), nprocs=WORLD)


if __name__ == "__main__":
    main()

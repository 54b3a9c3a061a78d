"""Which GPUs run a row's MoE block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.hops.moves import moe_sources, tp_ranks
from tracer.replay.faults import Fault

if TYPE_CHECKING:
    from tracer.replay.arrays import IntArray
    from tracer.replay.machine import Gpu
    from tracer.replay.run import Run


def sources_of(run: Run, home: int) -> list[int]:
    """Ranks that route and dispatch a row, by its home; all of the TP group under the named fault."""
    if run.fault is Fault.DISPATCH_TWICE:
        return tp_ranks(run.scenario, home)
    return moe_sources(run.scenario, home)


def source_rows(run: Run, gpu: Gpu) -> IntArray:
    """Ids of the rows whose MoE block a GPU runs, ascending."""
    keys, mesh = gpu.held("x").keys, run.scenario.mesh
    homes = run.batch.home[run.batch.rows_of(keys)]
    first = mesh.moved(gpu.rank, "pp", 0)
    runs_here = [home for home in np.unique(homes).tolist() if first in sources_of(run, home)]
    return keys[np.isin(homes, runs_here)]

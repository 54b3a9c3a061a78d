"""The rows of a batch on one GPU's experts, and the grouped GEMM that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.permutation import GemmWork, grouped_against_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.scenario import Scenario

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GpuRows:
    """Rows ``[experts held]`` int64 on the EP rank with most of them, and its first expert GEMM both ways.

    ``columns`` is the width of gate and up together, an etp rank's share; ``experts`` are those held.
    """

    ep_rank: int
    experts: tuple[int, ...]
    rows: Ints
    columns: int
    loop: GemmWork
    grouped: GemmWork


def busiest_gpu(scenario: Scenario, layer: int, load: Ints, *, sms: int = 132) -> GpuRows:
    """The EP rank that most rows of a layer's batch reach; ``load`` ``[experts]`` are the batch's picks.

    Rows of an expert share evenly over its slots and over the edp groups, rounded up.

    Raises:
        ConfigError: for a model without experts or without their width.
    """
    model = scenario.need_model()
    experts = model.need("experts", "place rows")
    placement, mesh = scenario.placement_of(layer), scenario.mesh
    slots = np.array([len(placement.ep_ranks_of(expert)) for expert in range(experts)], np.int64)
    rows = -(-load[:experts] // (slots * mesh.size_of("edp")))
    held = [np.array(placement.experts_of(rank), np.int64) for rank in range(mesh.size_of("ep"))]
    ep_rank = max(range(len(held)), key=lambda rank: int(rows[held[rank]].sum()))
    columns = -(-2 * model.need("expert_hidden", "size an expert's GEMM") // mesh.size_of("etp"))
    counts = rows[held[ep_rank]]
    loop, grouped = grouped_against_loop(counts, columns, sms=sms)
    return GpuRows(ep_rank, tuple(held[ep_rank].tolist()), counts, columns, loop, grouped)

"""The rows of a batch sorted by expert on one GPU, as a grouped GEMM wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.batch.grouped_gemm import GemmWork, grouped_against_loop
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.picks.source import Picks
    from tracer.scenario.scenario import Scenario

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Permutation:
    """Picks of a batch grouped by expert; an expert without tokens has an empty run.

    ``gather``: ``[m]`` int64, token of each row of the sorted buffer; ``pick``: ``[m]``, which of its
    picks; ``counts``, ``starts``, ``ends``: ``[experts]``, rows of each expert; ``scatter``: ``[tokens, k]``,
    row of each pick in the buffer, -1 where there is none. Inclusive sums of counts are ends, not starts.
    """

    gather: Ints
    pick: Ints
    counts: Ints
    starts: Ints
    ends: Ints
    scatter: Ints


def permute(picks: Picks, experts: int) -> Permutation:
    """Group ``picks`` ``[tokens, k]`` by expert, tokens of an expert in their order; -1 is left out.

    >>> found = permute(np.array([[2, 0], [0, 3]]), 4)
    >>> found.gather.tolist(), found.starts.tolist(), found.ends.tolist()
    ([0, 1, 0, 1], [0, 2, 2, 3], [2, 2, 3, 4])

    Raises:
        ConfigError: naming a pick outside the experts.
    """
    flat = np.asarray(picks).reshape(-1).astype(np.int64)
    outside = (flat < -1) | (flat >= experts)
    if outside.any():
        place = int(np.argmax(outside))
        token, column = divmod(place, picks.shape[1])
        raise ConfigError(
            f"picks[{token}, {column}]", int(flat[place]), f"must be from 0 to {experts - 1}", "mend it"
        )
    order = np.argsort(flat, kind="stable")
    order = order[flat[order] >= 0]
    counts = np.bincount(flat[flat >= 0], minlength=experts).astype(np.int64)
    ends = np.cumsum(counts)
    scatter = np.full(len(flat), -1, np.int64)
    scatter[order] = np.arange(len(order))
    width = picks.shape[1]
    return Permutation(order // width, order % width, counts, ends - counts, ends, scatter.reshape(-1, width))


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

    Rows of an expert share evenly over its slots and over the edp groups, rounded up. Shared experts that
    are routed stand after the others, in ``load`` as in the placement.

    Raises:
        ConfigError: for a model without experts or without their width.
    """
    model = scenario.model
    experts = model.need("experts", "place rows") + len(scenario.always_picked)
    placement, mesh = scenario.placement_of(layer), scenario.mesh
    slots = np.array([len(placement.ep_ranks_of(expert)) for expert in range(experts)], np.int64)
    rows = -(-load[:experts] // (slots * mesh.edp))
    held = [np.array(placement.experts_of(rank), np.int64) for rank in range(mesh.ep)]
    ep_rank = max(range(len(held)), key=lambda rank: int(rows[held[rank]].sum()))
    columns = -(-2 * model.need("expert_hidden", "size an expert's GEMM") // mesh.etp)
    counts = rows[held[ep_rank]]
    loop, grouped = grouped_against_loop(counts.tolist(), columns, sms=sms)
    return GpuRows(ep_rank, tuple(held[ep_rank].tolist()), counts, columns, loop, grouped)

"""Traffic of the contracts that do not look at picks: every row of a home takes the same hops.

The hops are the trip's own, once for each home, times the rows that start there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.batch.census.counts import StageTraffic, add_ib, picks_by_expert, picks_by_member
from tracer.mesh.axes import Axis
from tracer.scenario.plan import Contract, Sp
from tracer.trip import hops
from tracer.trip.hop import Part, Role, Where
from tracer.trip.hops.ep import combine_to, dispatch_from, pulls_to

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.census.counts import Counts
    from tracer.batch.census.layout import CensusLayout, ExpertTargets
    from tracer.scenario.scenario import Scenario
    from tracer.trip.hop import Transfer

    Int64s = NDArray[np.int64]


def fixed_traffic(
    layout: CensusLayout, targets: ExpertTargets, counts: Counts, layers: tuple[int, ...]
) -> StageTraffic:
    """Traffic of ag_rs, tp and dwdp; as :func:`tracer.batch.census.traffic.stage_traffic`.

    Rows are those of all layers together; weights are pulled once in each.
    """
    scenario, stage = layout.scenario, layout.stage_of(layers[0])
    square = (layout.sources, layout.sources)
    sent, back, pulled, picks = (np.zeros(square, np.int64) for _ in range(4))
    rows = counts.tokens - counts.blank
    for source, rank in enumerate(scenario.mesh.stage_lists()[stage].tolist()):
        if rows[source]:
            for transfer in _moves(scenario, Where(layers[0], stage, 0, rank, Part.MOE)):
                place = (scenario.mesh.position(transfer.src), scenario.mesh.position(transfer.dst))
                if transfer.role == Role.WEIGHTS:
                    pulled[place] += transfer.bytes * len(layers)
                else:
                    (back if transfer.role == Role.PARTIAL else sent)[place] += rows[source]
    ib_copies = np.zeros((layout.sources, scenario.cluster.nvlink_domains), np.int64)
    for group in layout.groups[stage]:
        block = np.ix_(group.positions, group.positions)
        picks[block] = picks_by_member(group, targets, counts.hist)
        if scenario.plan.contract is Contract.AG_RS:
            add_ib(group, sent[block], ib_copies)
    own = picks_by_expert(targets, counts)
    picks = _worked(scenario, picks, own.sum(1))
    return StageTraffic(
        copies=_copies(scenario, layout, stage, counts, rows),
        picks=picks,
        sent=sent,
        back=back,
        ib_copies=ib_copies,
        relayed=np.zeros(layout.sources, np.int64),
        load=own.sum(0),
        gpu_load=picks.sum(0),
        pulled=pulled,
        rows=rows,
    )


def _moves(scenario: Scenario, where: Where) -> list[Transfer]:
    """What one row of ``where.home`` moves in the MoE block; other TP ranks' copies count as their own."""
    mesh, contract, home = scenario.mesh, scenario.plan.contract, where.home
    if contract is Contract.TP:
        if mesh.tp == 1:
            return []
        gather = scenario.plan.sp is Sp.MEGATRON
        taken = (hops.all_gather, hops.reduce_scatter) if gather else (hops.all_reduce,)
        return [transfer for hop in taken for transfer in hop(scenario, where).transfers]
    if mesh.dispatch_size == 1:
        return []
    if contract is Contract.DWDP:
        return pulls_to(scenario, where, home)
    return dispatch_from(scenario, where, home) + combine_to(scenario, where, home)


def _worked(scenario: Scenario, picks: Int64s, own: Int64s) -> Int64s:
    """Picks by home and the GPU at work: its TP group (tp), itself (dwdp), the experts' GPUs (ag_rs)."""
    if scenario.plan.contract is Contract.AG_RS:
        return picks
    worked = np.zeros_like(picks)
    for home, rank in enumerate(scenario.mesh.stage_lists()[0].tolist()):
        alone = scenario.plan.contract is Contract.DWDP
        for peer in (rank,) if alone else scenario.mesh.dense.group(rank, Axis.TP):
            worked[home, scenario.mesh.position(peer)] = own[home]
    return worked


def _copies(scenario: Scenario, layout: CensusLayout, stage: int, counts: Counts, rows: Int64s) -> Int64s:
    """Rows by home and the GPU that works on them, each GPU once a token."""
    copies = np.zeros((layout.sources, layout.sources), np.int64)
    if scenario.plan.contract is not Contract.AG_RS:
        return _worked(scenario, copies, rows)
    for group in layout.groups[stage]:
        block = np.ix_(group.positions, group.positions)
        copies[block] = counts.gpus[group.positions][:, group.bits]
    return copies

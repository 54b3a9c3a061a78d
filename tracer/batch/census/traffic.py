"""From counts to what each rank sends when experts are reached by tokens: relays, straight, low latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.batch.census.counts import StageTraffic, add_ib, picks_by_expert, picks_by_member
from tracer.scenario.plan import Contract, DispatchMode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.census.counts import Counts
    from tracer.batch.census.layout import CensusLayout, ExpertTargets, GroupPlaces

    Int64s = NDArray[np.int64]


def stage_traffic(
    layout: CensusLayout, targets: ExpertTargets, counts: Counts, layers: tuple[int, ...]
) -> StageTraffic:
    """Traffic by the scenario's contract of the ``layers`` that ``counts`` counted together."""
    if layout.scenario.plan.contract is not Contract.EP:
        from tracer.batch.census.fixed_contracts import fixed_traffic

        return fixed_traffic(layout, targets, counts, layers)
    stage, sources = layout.stage_of(layers[0]), layout.sources
    square = (sources, sources)
    copies, picks, sent = (np.zeros(square, np.int64) for _ in range(3))
    ib_copies = np.zeros((sources, layout.scenario.cluster.nvlink_domains), np.int64)
    relayed, straight = np.zeros(sources, np.int64), 0
    hits = counts.gpus if layout.lane_bits == 1 else counts.nvlink_domains
    for group in layout.groups[stage]:
        block = np.ix_(group.positions, group.positions)
        copies[block] = counts.gpus[group.positions][:, group.bits]
        picks[block] = picks_by_member(group, targets, counts.hist)
        if layout.scenario.plan.dispatch is DispatchMode.LOW_LATENCY:
            moved = picks[block]
            np.fill_diagonal(moved, 0)
            sent[block] = moved
            add_ib(group, moved, ib_copies)
        else:
            straight += _relay(group, copies[block], hits[group.positions], sent, ib_copies, relayed)
    return StageTraffic(
        copies=copies,
        picks=picks,
        sent=sent,
        back=sent.T,
        ib_copies=ib_copies,
        relayed=relayed,
        load=picks_by_expert(targets, counts).sum(0),
        gpu_load=picks.sum(0),
        pulled=np.zeros(square, np.int64),
        rows=counts.tokens - counts.blank,
        straight=straight,
    )


def _relay(
    group: GroupPlaces,
    copies: Int64s,
    hits: Int64s,
    sent: Int64s,
    ib_copies: Int64s,
    relayed: Int64s,
) -> int:
    """Add a group's high-throughput sends; messages that went straight for want of a relay are returned.

    One copy per GPU inside the home's NVLink domain; one to each remote NVLink domain's rank with the home's
    index, which forwards one per GPU.
    """
    straight = 0
    for lane in range(group.lane_count):
        members = np.flatnonzero(group.lanes == lane)
        member_of = {int(group.indices[member]): int(member) for member in members}
        there, nvlink_domain = group.positions[members], int(group.nvlink_domains[members[0]])
        for home, source in enumerate(group.positions.tolist()):
            row = copies[home, members]
            relay = member_of.get(int(group.indices[home]))
            if group.lanes[home] == lane:
                sent[source, there] += np.where(members == home, 0, row)
            elif relay is None:
                straight += int(row.sum())
                ib_copies[source, nvlink_domain] += row.sum()
                sent[source, there] += row
            else:
                middle = group.positions[relay]
                ib_copies[source, nvlink_domain] += hits[home, lane]
                sent[source, middle] += hits[home, lane]
                forwarded = np.where(members == relay, 0, row)
                sent[middle, there] += forwarded
                relayed[middle] += forwarded.sum()
    return straight

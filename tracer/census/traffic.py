"""From counts to what each rank sends when experts are reached by tokens: relays, straight, low latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracer.plan import Contract

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.census.counts import Counts
    from tracer.census.layout import CensusLayout, ExpertTargets, GroupPlaces

    Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StageTraffic:
    """What one stage moves in the layers counted; ranks are places in the stage's ascending list.

    ``copies [home, gpu]``: tokens with an expert on the GPU, the home's own included. ``picks [home,
    gpu]``: picks, one for each etp rank. ``sent [src, dst]``: messages out, through relays; ``back``:
    messages of combine. ``ib_copies [home, island]``: messages that leave a home for another island.
    ``relayed [gpu]``: messages it forwards for others. ``load [expert]``, ``gpu_load [gpu]``: picks.
    ``straight``: messages that went straight for want of a relay. ``pulled [owner, puller]``: bytes of
    weights. ``rows [home]``: rows with picks; one of -1 alone (padding, or a cached position) is none.
    All int64.
    """

    copies: Int64s
    picks: Int64s
    sent: Int64s
    back: Int64s
    ib_copies: Int64s
    relayed: Int64s
    load: Int64s
    gpu_load: Int64s
    pulled: Int64s
    rows: Int64s
    straight: int = 0


def stage_traffic(
    layout: CensusLayout, targets: ExpertTargets, counts: Counts, layers: tuple[int, ...]
) -> StageTraffic:
    """Traffic by the scenario's contract of the ``layers`` that ``counts`` counted together."""
    if layout.scenario.plan.contract != Contract.EP:
        from tracer.census.fixed_contracts import fixed_traffic

        return fixed_traffic(layout, targets, counts, layers)
    stage, sources = layout.stage_of(layers[0]), layout.sources
    square = (sources, sources)
    copies, picks, sent = (np.zeros(square, np.int64) for _ in range(3))
    ib_copies = np.zeros((sources, layout.scenario.cluster.islands), np.int64)
    relayed, straight = np.zeros(sources, np.int64), 0
    hits = counts.gpus if layout.lane_bits == 1 else counts.islands
    for group in layout.groups[stage]:
        block = np.ix_(group.positions, group.positions)
        copies[block] = counts.gpus[group.positions][:, group.bits]
        picks[block] = picks_by_member(group, targets, counts.hist)
        if layout.scenario.plan.dispatch == "low_latency":
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


def picks_by_expert(targets: ExpertTargets, counts: Counts) -> Int64s:
    """Picks ``[sources, experts]``, those of an expert's replicas summed."""
    found: Int64s = np.add.reduceat(counts.hist, targets.first[1:], axis=1)
    return found


def picks_by_member(group: GroupPlaces, targets: ExpertTargets, hist: Int64s) -> Int64s:
    """Picks ``[homes, members]``: each expert's, at every etp rank of the EP rank that serves it."""
    by_ep = np.zeros((len(group.ranks), int(group.ep_ranks.max()) + 1), np.int64)
    for home, position in enumerate(group.positions.tolist()):
        served = targets.ep_ranks[targets.variant_of[position]]
        np.add.at(by_ep[home], served[1:], hist[position, 1:])
    return by_ep[:, group.ep_ranks]


def _relay(
    group: GroupPlaces,
    copies: Int64s,
    hits: Int64s,
    sent: Int64s,
    ib_copies: Int64s,
    relayed: Int64s,
) -> int:
    """Add a group's high-throughput sends; messages that went straight for want of a relay are returned.

    One copy a GPU inside the home's island; one to each remote island's rank with the home's index,
    which forwards one a GPU.
    """
    straight = 0
    for lane in range(group.lane_count):
        members = np.flatnonzero(group.lanes == lane)
        member_of = {int(group.indices[member]): int(member) for member in members}
        there, island = group.positions[members], int(group.islands[members[0]])
        for home, source in enumerate(group.positions.tolist()):
            row = copies[home, members]
            relay = member_of.get(int(group.indices[home]))
            if group.lanes[home] == lane:
                sent[source, there] += np.where(members == home, 0, row)
            elif relay is None:
                straight += int(row.sum())
                ib_copies[source, island] += row.sum()
                sent[source, there] += row
            else:
                middle = group.positions[relay]
                ib_copies[source, island] += hits[home, lane]
                sent[source, middle] += hits[home, lane]
                forwarded = np.where(members == relay, 0, row)
                sent[middle, there] += forwarded
                relayed[middle] += forwarded.sum()
    return straight


def add_ib(group: GroupPlaces, sent: Int64s, ib_copies: Int64s) -> None:
    """Add a group's messages between islands, ``sent [homes, members]``, to ``ib_copies``."""
    outside = group.islands[:, None] != group.islands[None, :]
    for member, island in enumerate(group.islands.tolist()):
        ib_copies[group.positions, island] += np.where(outside[:, member], sent[:, member], 0)

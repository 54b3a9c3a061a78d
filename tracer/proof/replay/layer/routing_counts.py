"""Counts of rows per expert on arrays: summed over a replica's ranks, and gathered over the dispatch group.

Every rank makes each exchange once a layer; the ledger has it with the tokens whose trips show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.proof.replay.layer.gates import gate, source_rows
from tracer.proof.replay.sent import Place, Pulled
from tracer.trip.hop import HopKind, Part, Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracer.proof.replay.layer.maths import IntArray
    from tracer.proof.replay.run import Run
    from tracer.proof.replay.walk import Halt


def exchange_counts(run: Run, layer: int) -> None:
    """Count each rank's picks ``[experts]`` int64, and exchange the counts as the rows' trips say.

    What every rank holds afterwards is compared with a count of all picks of its group.
    """
    experts = run.scenario.model.need("experts", "count rows per expert")
    counts: dict[int, IntArray] = {}
    for gpu in run.gpus_of_layer(layer):
        picked = gate(run, gpu, layer, source_rows(run, gpu)).experts
        counts[gpu.rank] = np.bincount(picked[picked < experts], minlength=experts)
    for kind, axes in ((HopKind.COUNTS_REDUCE, ("tp", "cp")), (HopKind.COUNTS_GATHER, ("etp", "ep"))):
        halts = run.walk.take(layer, Part.MOE, (kind,))
        received = _move(run, Place(layer, Part.MOE, kind), halts, counts)
        for rank, arrays in received.items():
            group = run.scenario.mesh.group(rank, axes)
            run.checks.whole_numbers(_total(arrays), _total([counts[peer] for peer in group]))


def _total(arrays: Sequence[IntArray]) -> IntArray:
    total: IntArray = np.sum(arrays, axis=0)
    return total


def _move(
    run: Run, place: Place, halts: list[Halt], counts: dict[int, IntArray]
) -> dict[int, list[IntArray]]:
    """Copy counts along the halts' transfers, each pair of ranks once; what each rank then holds.

    A sum goes back whole from the rank that made it, so that a rank holds its group's sum alone.
    """
    served: dict[tuple[int, int], list[int]] = {}
    for halt in halts:
        for transfer in halt.build(run.scenario, halt.where).transfers:
            served.setdefault((transfer.src, transfer.dst), []).append(int(run.batch.ids[halt.row]))
    held: dict[int, list[IntArray]] = {}
    roots = {halt.where.home for halt in halts}
    summed = place.kind is HopKind.COUNTS_REDUCE
    for source, target in served:
        if not summed or target in roots:
            held.setdefault(target, [counts[target].copy()]).append(counts[source].copy())
    if summed:
        for source, target in served:
            if target not in roots:
                held[target] = [_total(held[source])]
    for (source, target), tokens in served.items():
        moved = Pulled(place, Role.METADATA, source, target, tuple(tokens), len(counts[source]))
        run.machine.ledger.pulled.append(moved)
    return held

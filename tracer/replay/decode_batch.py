"""Every row that one decode step moves: a new token of each request, and dummies in the other slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tracer.replay.batch import Batch

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def decode_batch(scenario: Scenario, prompts: Sequence[int], span: int, words: Mapping[int, int]) -> Batch:
    """The step at the scenario's position: one request a replica with a prompt, in the scenario's slot.

    ``words`` are the tokens that enter, by replica. All other slots of every CP rank's padded batch hold
    dummies with negative ids, ``-1 - n`` for the n-th slot of all.
    """
    landing, mesh = scenario.decode_landing, scenario.mesh
    slot, position = scenario.slot or 0, scenario.position
    rows, number = [], 0
    for replica, length in enumerate(prompts):
        for cp in range(landing.cp):
            for place in range(landing.padded):
                number += 1
                real = length > 0 and cp == landing.cp_of(position) and place == slot
                home = mesh.rank(tp=place // landing.rows_per_rank, cp=cp, dp=replica, pp=0)
                token = replica * span + position if real else -number
                word = words[replica] if real else 0
                rows.append((token, replica, position, cp, place, landing.padded, home, word, int(real)))
    columns = np.array(sorted(rows), dtype=np.int64).T
    ids, replicas, positions, cps, places, share, homes, tokens, read = columns
    return Batch(
        tuple(prompts), span, ids, replicas, positions, cps, places, share, homes, tokens, read.astype(bool)
    )

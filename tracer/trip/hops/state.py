"""The state of linear attention or Mamba over context parallelism: handed on with the token's part in it.

In prefill the CP rank that has computed a piece of the prompt hands the state to the rank with the next
piece, 2·cp - 1 times with zigzag (once to itself), cp - 1 times without. A token's trip follows the state
from the piece that the token is in to the last. In decode the state comes from the home of the position
before. A state has one size, however many tokens are in it, so tokens of a piece share these transfers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tracer.memory.kv_bytes import state_bytes_of_layer
from tracer.trip.hop import Hop, HopKind, Role, Where
from tracer.trip.hops.moves import make_hop, send, tp_ranks
from tracer.trip.kinds import kind_at, state_walk

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def state_bytes(scenario: Scenario, layer: int) -> int:
    """Bytes of a layer's state on one TP rank: its heads' recurrent state and last convolution inputs."""
    kind = kind_at(scenario.model, layer)
    return 0 if kind is None else state_bytes_of_layer(kind, scenario.dtype.activations, scenario.mesh.tp)


def state_pass(scenario: Scenario, where: Where) -> Hop:
    """Each TP rank's part of the state goes on to the CP ranks of later tokens."""
    size, walk = state_bytes(scenario, where.layer), state_walk(scenario, where.position)
    transfers = []
    for rank in tp_ranks(scenario, where.home):
        ranks = [scenario.mesh.moved(rank, "cp", cp) for cp in walk]
        transfers += [send(scenario, a, b, size, Role.STATE) for a, b in pairwise(ranks) if a != b]
    return make_hop(HopKind.STATE_PASS, where, transfers)

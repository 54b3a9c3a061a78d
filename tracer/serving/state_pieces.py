"""States between pools: which prefill rank sends which heads of a state to which decode rank.

A state has one owner for each head. Where it is handed on over CP, prefill ends with it on the CP rank of
the prompt's last piece, and decode begins with it there where its own last prompt position is at home; where
heads move, each CP rank has some heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.memory.kv import kv_cp
from tracer.memory.kv_bytes import state_bytes_of_layer
from tracer.scenario.plan import StateExchange
from tracer.trip.kinds import state_walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracer.model.layers import LayerKind, LinearAttention, Mamba2
    from tracer.scenario.scenario import Scenario
    from tracer.serving.pools import Pools

Place = tuple[int, int]
"""(TP coordinate, CP coordinate) of a rank in its replica and stage."""


def state_places(scenario: Scenario, heads: int) -> dict[Place, range]:
    """Heads of a state by the place that has them when the prompt is done."""
    mesh, plan = scenario.mesh, scenario.plan
    if plan.state_exchange is StateExchange.HEADS and mesh.cp > 1:
        parts = mesh.tp * mesh.cp
        order = [(tp, cp) for tp in range(mesh.tp) for cp in range(mesh.cp)]
    else:
        last = scenario.token.prompt - 1
        cp = kv_cp(scenario, last) if scenario.decodes else state_walk(scenario, last)[-1]
        parts, order = mesh.tp, [(tp, cp) for tp in range(mesh.tp)]
    return {
        place: range(index * heads // parts, (index + 1) * heads // parts)
        for index, place in enumerate(order)
    }


def state_moves(
    pools: Pools, kind: LayerKind, mixer: LinearAttention | Mamba2
) -> Iterator[tuple[Place, Place, range, int]]:
    """(prefill place, decode place, heads, bytes) of a layer's state: every decode rank gets its heads.

    A rank's bytes are those that it keeps; what several sources bring of them is cut by heads.
    """
    sources, targets = state_places(pools.prefill, mixer.heads), state_places(pools.decode, mixer.heads)
    size = state_bytes_of_layer(kind, pools.decode.dtype.activations, len(targets))
    for target, own in targets.items():
        for source, held in sources.items():
            heads = range(max(own.start, held.start), min(own.stop, held.stop))
            if heads:
                before, after = heads.start - own.start, heads.stop - own.start
                yield source, target, heads, size * after // len(own) - size * before // len(own)

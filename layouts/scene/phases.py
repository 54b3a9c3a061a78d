"""When each transfer of a hop starts, in steps from the hop's own start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.mesh.axes import Axis
from tracer.scenario.plan import KvExchange, TpAlgo
from tracer.trip.hop import HopKind, Role

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.trip.hop import Hop


def is_ring(scenario: Scenario, hop: Hop) -> bool:
    """Whether a hop hands on from rank to rank."""
    if hop.kind is HopKind.KV_EXCHANGE:
        return scenario.plan.kv_exchange is not KvExchange.ALL_GATHER
    if hop.kind is HopKind.STATE_PASS:
        return True
    return hop.axis == Axis.TP and scenario.plan.tp_algo is TpAlgo.RING


def phases(hop: Hop, *, ring: bool) -> list[int]:
    """One step per transfer: a relay forwards after it received, a ring hands on."""
    if ring:
        return _ring_phases(hop)
    second = {Role.FORWARD, Role.SUM}
    if hop.kind is HopKind.ALL_REDUCE:
        second.add(Role.ROW)
    steps = [1 if transfer.role in second else 0 for transfer in hop.transfers]
    return steps if 0 in steps else [0] * len(steps)


def _ring_phases(hop: Hop) -> list[int]:
    arrived: dict[tuple[int, str], int] = {}
    steps: list[int] = []
    for transfer in hop.transfers:
        step = arrived.get((transfer.src, transfer.role), -1) + 1
        if hop.kind is HopKind.ALL_REDUCE and transfer.role == Role.ROW and step == 0:
            step = max(steps, default=-1) + 1
        arrived[transfer.dst, transfer.role] = step
        steps.append(step)
    return steps

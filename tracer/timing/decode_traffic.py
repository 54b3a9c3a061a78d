"""What one decode step sends: the forms of prefill over one row a request, and attention's own hops."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracer.axis_traffic import AxisTraffic, split_line
from tracer.cluster import Tier
from tracer.dtype import BYTES
from tracer.expected_traffic import ExpectedTraffic, expected_traffic
from tracer.hop import HopKind
from tracer.scenario import Scenario, Token
from tracer.trip import iterate_hops

if TYPE_CHECKING:
    from tracer.hop import Hop

_ATTENTION = (HopKind.QUERY_SEND, HopKind.PARTIALS_RETURN, HopKind.KV_EXCHANGE)


def rows_scenario(scenario: Scenario, rows: int) -> Scenario:
    """The scenario with a prompt of ``rows`` tokens; a decode step's rows lie as a prompt of them would."""
    token = Token(prompt=rows, replica=scenario.replica)
    return replace(scenario, phase="prefill", token=token)


def step_traffic(scenario: Scenario, rows: int) -> ExpectedTraffic:
    """Traffic of one step of ``rows`` requests a replica.

    TP, EP and PP move a row a request as prefill does; what attention moves over CP is one token's hops
    of the first layer times the rows, shared by the replica's GPUs.

    Raises:
        ConfigError: when the scenario lacks what a hop needs, or the mesh is too large to sum over.
    """
    found = expected_traffic(rows_scenario(scenario, rows))
    kept = tuple(line for line in found.lines if line.axis != "cp")
    hops = [hop for hop in _first_layer(scenario) if hop.kind in _ATTENTION]
    return replace(found, lines=(*kept, _attention_line(scenario, hops, rows)) if hops else kept)


def _first_layer(scenario: Scenario) -> list[Hop]:
    hops = []
    for hop in iterate_hops(scenario):
        if hop.layer > 1:
            break
        hops.append(hop)
    return hops


def _attention_line(scenario: Scenario, hops: list[Hop], rows: int) -> AxisTraffic:
    """A line from one token's transfers."""
    gpus = scenario.mesh.size_of("tp") * scenario.mesh.size_of("cp")
    moved = dict.fromkeys((Tier.NVLINK, Tier.IB), 0)
    for hop in hops:
        for transfer in hop.transfers:
            moved[Tier(transfer.tier)] += transfer.bytes
    nvlink, ib = (size * rows / gpus for size in moved.values())
    element = BYTES[scenario.dtype.activations]
    return split_line(
        scenario.cluster,
        "cp",
        "attention",
        elements=(nvlink + ib) / element,
        size=nvlink + ib,
        nvlink=(nvlink / element, nvlink),
        ib=(ib / element, ib),
        formula="(requests/(cp·tp)) · " + " + ".join(str(hop.kind) for hop in hops),
        numbers=f"({rows}/{gpus})·{sum(moved.values()) / element:g}",
        times=scenario.need_model().layers,
    )

"""A recorded forward MoE layer is the trip's: the same operations, groups and order, and bytes by the row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runs.made import DATA
from tracer.runs.phases import ForwardLayer
from tracer.runs.reading.recording import Op, OpKind
from tracer.runs.report import examine_files
from tracer.runs.scenario import to_scenario
from tracer.scenario.scenario import Scenario
from tracer.trip.hop import Hop, HopKind
from tracer.trip.trip import take_trip

OPS = {
    HopKind.ALL_GATHER: (OpKind.ALL_GATHER, "tp"),
    HopKind.REDUCE_SCATTER: (OpKind.REDUCE_SCATTER, "tp"),
    HopKind.COUNTS_REDUCE: (OpKind.ALL_REDUCE, ("tp", "cp")),
    HopKind.COUNTS_GATHER: (OpKind.ALL_GATHER, ("etp", "ep")),
    HopKind.DISPATCH: (OpKind.ALL_TO_ALL, "ep"),
    HopKind.PROBS_DISPATCH: (OpKind.ALL_TO_ALL, "ep"),
    HopKind.COMBINE: (OpKind.ALL_TO_ALL, "ep"),
}
OWN_ROWS = (OpKind.ALL_TO_ALL, OpKind.ALL_REDUCE)
SIZES = {"Byte": 1, "BFloat16": 2, "Long": 8}


def recorded(name: str) -> tuple[ForwardLayer, Scenario]:
    """The fullest forward layer, and the recovered scenario with a token at home on its rank."""
    report = examine_files([DATA / name])
    layers = [layer for each in report.classified.values() for layer in each.layers]
    layer = max(layers, key=lambda each: len(each.ops))
    tables: dict[str, Any] = to_scenario(report.layout)[0].to_dict()
    tables["mesh"] |= {"shared_overlap": True, "routing_metadata": True}
    scenario = Scenario.from_dict(tables)
    mesh = scenario.mesh
    far = (mesh.expert_coordinate(layer.rank, "ep") + 1) % mesh.ep
    expert = next(
        e for e in range(scenario.placement_of(1).experts) if far in scenario.placement_of(1).ep_ranks_of(e)
    )
    numbers = range(1, scenario.model.layers + 1)
    tables["picks"] = {str(n): [expert] for n in numbers}
    tables["token"] = {"prompt": scenario.token.prompt, "gpu": mesh.moved(layer.rank, "pp", 0)}
    return layer, Scenario.from_dict(tables)


def hops_on(scenario: Scenario, rank: int) -> list[Hop]:
    """The trip's hops of one MoE layer in the rank's stage."""
    number = scenario.layers_of(scenario.mesh.stage_of(rank))[0]
    return [hop for hop in take_trip(scenario).hops if hop.layer == number and hop.kind in OPS]


def moved_bytes(op: Op) -> int:
    """Bytes of an operation's rows: those of all ranks where rows are gathered or scattered, else its own."""
    rows = (
        op.in_elements
        if op.kind in (OpKind.ALL_TO_ALL, OpKind.ALL_REDUCE)
        else max(op.in_elements, op.out_elements)
    )
    return rows * SIZES[op.dtype]


def rows_of(op: Op) -> int:
    """Rows that an operation moved, the first size of its tensor; probabilities have one a row."""
    shape = (
        op.in_shapes[0]
        if op.kind in (OpKind.ALL_TO_ALL, OpKind.ALL_REDUCE)
        else max(op.in_shapes[0], op.out_shapes[0])
    )
    return int(shape[0])


@pytest.mark.parametrize("name", ["megatron-a", "megatron-b"])
def test_a_recorded_layer_is_the_trips(name: str) -> None:
    layer, scenario = recorded(name)
    hops = hops_on(scenario, layer.rank)
    assert len(hops) == 9
    compared = list(zip(layer.ops, hops, strict=not layer.ends_cut))
    assert len(compared) == {"megatron-a": 9, "megatron-b": 5}[name]
    for op, hop in compared:
        kind, axes = OPS[hop.kind]
        assert op.kind is kind, hop.kind
        assert tuple(op.group.members or ()) == tuple(sorted(scenario.mesh.group(layer.rank, axes))), hop.kind
        size = hop.transfers[0].bytes
        if hop.kind is HopKind.COUNTS_REDUCE:
            assert moved_bytes(op) == size
        elif hop.kind is HopKind.COUNTS_GATHER:
            assert moved_bytes(op) == size * scenario.mesh.dispatch_size
        elif op.dtype == "Byte":  # rows are cast to FP8 before the gather: half of the activations' bytes
            assert 2 * moved_bytes(op) == rows_of(op) * size
        else:
            assert moved_bytes(op) == rows_of(op) * size


def test_routing_metadata_is_off_unless_asked_for() -> None:
    _, scenario = recorded("megatron-a")
    told = scenario.to_dict()
    told["mesh"]["routing_metadata"] = False
    kinds = {hop.kind for hop in take_trip(Scenario.from_dict(told)).hops}
    assert not kinds & {HopKind.COUNTS_REDUCE, HopKind.COUNTS_GATHER, HopKind.PROBS_DISPATCH}
    assert HopKind.PROBS_DISPATCH in {hop.kind for hop in take_trip(scenario).hops}

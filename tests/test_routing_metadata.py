"""Closed forms of what routing exchanges besides rows, against the trips and against plain sums."""

from __future__ import annotations

from typing import Any

import pytest

from tracer import Scenario, take_trip
from tracer.timing.report import time_report
from tracer.traffic.traffic import comm_volume
from tracer.trip.hop import HopKind

MODEL = {
    "layers": 3, "hidden": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "vocab": 96, "experts": 8,
    "top_k": 2, "expert_hidden": 32, "dense_layers": 1, "dense_hidden": 64,
}  # fmt: skip


def scenario(mesh: dict[str, Any], **tables: Any) -> Scenario:
    asked = {"dispatch": "low_latency", "routing_metadata": True}
    cluster = {"gpus_per_node": 2, "hardware": "h100"}
    return Scenario.from_dict({"model": MODEL, "mesh": mesh | asked, "cluster": cluster} | tables)


@pytest.mark.parametrize(
    "mesh",
    [
        {"tp": 2, "dp": 2, "ep": 4},
        {"tp": 2, "cp": 2, "dp": 2, "ep": 2, "etp": 2, "sp": "off"},
        {"tp": 2, "dp": 4, "ep": 8, "sp": "before_dispatch"},
    ],
    ids=str,
)
def test_forms_are_what_trips_carry(mesh: dict[str, Any]) -> None:
    """A rank's counts go once a layer; probabilities are as many as the rows of dispatch."""
    found = scenario(mesh)
    lines = {line.part: line for line in comm_volume(found).lines if line.axis in ("tp", "ep")}
    hops = {hop.kind: hop for hop in take_trip(found).hops if hop.layer == 2}
    group, replica = found.mesh.dispatch_size, found.mesh.tp * found.mesh.cp
    reduced, gathered = hops[HopKind.COUNTS_REDUCE], hops[HopKind.COUNTS_GATHER]
    assert reduced.bytes == lines["counts_reduce"].bytes * replica == 2 * (replica - 1) * 8 * 8
    senders = len({transfer.src for transfer in gathered.transfers})
    assert gathered.bytes == senders * lines["counts_gather"].bytes == senders * (group - 1) * 8 * 8
    rows, beside = lines["moe"], lines["probs_dispatch"]
    assert beside.elements == rows.elements / (2 * 64)
    assert beside.ib_elements == pytest.approx(rows.ib_elements / (2 * 64))
    assert beside.nvlink_bytes == pytest.approx(2 * rows.nvlink_elements / (2 * 64))
    assert lines["counts_gather"].times == lines["probs_dispatch"].times == 2


def test_probabilities_of_all_tokens_are_the_form_by_picks() -> None:
    """One GPU a replica: Σ over tokens and what stays home is k a row, whatever the picks."""
    found = scenario({"dp": 4, "ep": 4}, token={"prompt": 16})
    line = next(line for line in comm_volume(found).lines if line.part == "probs_dispatch")
    sent = stays = 0
    for replica in range(4):
        for position in range(16):
            trip = take_trip(found.with_token(replica=replica, position=position))
            for hop in trip.hops:
                if hop.kind == HopKind.PROBS_DISPATCH:
                    sent += len(hop.transfers)
                    stays += 2 - len(hop.transfers)
    assert sent + stays == line.elements * 4 * 2
    assert sent == pytest.approx((line.nvlink_elements + line.ib_elements) * 4 * 2, rel=0.1)


def test_time_and_tables_have_them() -> None:
    found = scenario({"tp": 2, "dp": 2, "ep": 4})
    plain = found.with_(plan=Scenario.from_dict(
        {"model": MODEL, "mesh": {"tp": 2, "dp": 2, "ep": 4, "dispatch": "low_latency"}}
    ).plan)  # fmt: skip
    with_it, without = (time_report(each, rates="peak").whole for each in (found, plain))
    assert with_it is not None
    assert without is not None
    extra = with_it.moe_layer_seconds - without.moe_layer_seconds
    lines = [
        line
        for line in comm_volume(found).lines
        if line.part in ("counts_reduce", "counts_gather", "probs_dispatch")
    ]
    assert extra == pytest.approx(sum(line.seconds for line in lines))
    assert "counts_gather" in str(comm_volume(found))

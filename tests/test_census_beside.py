"""A census says what moves beside the experts: Σ of the trips, and the closed forms, agree with it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from tracer import Scenario, take_trip
from tracer.batch.census.beside import beside_traffic
from tracer.batch.census.take import landed_batch, take_census
from tracer.batch.picks.source import ArrayPicks
from tracer.traffic.traffic import comm_volume
from tracer.trip.hop import HopKind

MODEL = {
    "layers": 3, "hidden": 64, "heads": 8, "kv_heads": 4, "head_dim": 8, "vocab": 96, "experts": 8,
    "top_k": 2, "expert_hidden": 32,
}  # fmt: skip


def scenario(mesh: dict[str, Any], **model: Any) -> Scenario:
    tables = {"model": MODEL | model, "mesh": mesh, "cluster": {"gpus_per_node": 4}, "token": {"prompt": 16}}
    return Scenario.from_dict(tables)


def moved(found: Scenario) -> dict[str, tuple[int, int]]:
    """(NVLink, IB) bytes by kind, of one prompt on every replica."""
    picks, homes = landed_batch(found)
    census = take_census(found, ArrayPicks(picks), homes=homes)
    return {str(each.kind): (each.nvlink_bytes, each.ib_bytes) for each in beside_traffic(census)}


@pytest.mark.parametrize(
    "mesh",
    [
        {"tp": 2, "cp": 2, "dp": 2, "ep": 4, "kv_exchange": "ulysses"},
        {"cp": 4, "dp": 2, "ep": 4, "kv_exchange": "hierarchical", "cp_inner": 2},
        {"tp": 2, "cp": 2, "dp": 2, "pp": 3, "ep": 2, "sp": "off", "kv_exchange": "ulysses"},
    ],
    ids=str,
)
def test_hops_over_cp_are_those_of_all_trips(mesh: dict[str, Any]) -> None:
    found = scenario(mesh)
    total: Counter[tuple[str, str]] = Counter()
    for replica in range(found.mesh.dp):
        for position in range(16):
            for hop in take_trip(found.with_token(replica=replica, position=position)).hops:
                if hop.axis == "cp":
                    for transfer in hop.transfers:
                        total[str(hop.kind), str(transfer.tier)] += transfer.bytes
    assert moved(found) == {
        kind: (total[kind, "nvlink"], total[kind, "ib"]) for kind in dict.fromkeys(kind for kind, _ in total)
    }
    gpus = found.mesh.world_size // found.mesh.stages
    for line in comm_volume(found).lines:
        if line.axis == "cp":
            kind = "kv_exchange" if line.part == "attention" else line.part
            assert sum(moved(found)[kind]) == pytest.approx(line.bytes * line.times * gpus)
            assert moved(found)[kind][1] == pytest.approx(line.ib_bytes * line.times * gpus)


@pytest.mark.parametrize(
    "mesh",
    [
        {"dp": 8, "ep": 2, "weight_shard": "fsdp"},
        {"tp": 2, "cp": 2, "dp": 2, "ep": 4, "weight_shard": "zero3"},
        {"dp": 8, "ep": 2, "weight_shard": "hsdp", "weight_shard_size": 4},
    ],
    ids=str,
)
def test_gathers_are_the_closed_form_and_one_trip_s(mesh: dict[str, Any]) -> None:
    found = scenario(mesh)
    line = next(line for line in comm_volume(found).lines if line.part == "weight_gather")
    nvlink, ib = moved(found)["weight_gather"]
    gpus = found.mesh.world_size
    assert nvlink + ib == pytest.approx(line.bytes * line.times * gpus)
    assert ib == pytest.approx(line.ib_bytes * line.times * gpus)
    own = [hop for hop in take_trip(found).hops if hop.kind == HopKind.WEIGHT_GATHER and hop.layer > 0]
    layer = [hop for hop in own if hop.part == "attention"]
    each = layer[0].bytes // found.mesh.tp
    assert len({hop.bytes for hop in layer}) == 1
    experts = (nvlink + ib) / 3 / gpus - each
    assert experts >= 0
    assert (experts > 0) == (found.mesh.edp > 1)


def test_a_census_without_either_says_nothing_of_them() -> None:
    found = scenario({"cp": 2, "dp": 4, "ep": 4})
    picks, homes = landed_batch(found)
    census = take_census(found, ArrayPicks(np.asarray(picks)), homes=homes)
    assert beside_traffic(census) == ()
    assert "beside" not in census.to_dict()
    gathered = scenario({"dp": 8, "ep": 2, "weight_shard": "fsdp"})
    picks, homes = landed_batch(gathered)
    told = take_census(gathered, ArrayPicks(picks), homes=homes)
    assert "weight gathers" in str(told)
    assert set(told.to_dict()["beside"]) == {"weight_gather"}

"""Golden trip logs: text a person can read; only ``--tokentrip-update`` rewrites them."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

import tracer
from tracer.trip.trip import take_trip

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["six-cuts", "six-cuts-pp-inside-dp", "six-cuts-decode"])
def test_log_is_the_golden_one(name: str, golden_trip_log) -> None:
    golden_trip_log(take_trip(tracer.load_scenario(name)), GOLDEN / f"{name}.txt")


@pytest.mark.parametrize("name", tracer.preset_names())
def test_json_follows_its_schema(name: str) -> None:
    schema = json.loads((resources.files("tracer") / "data" / "schemas" / "trip.schema.json").read_text())
    trip = take_trip(tracer.load_scenario(name))
    jsonschema.validate(json.loads(json.dumps(trip.to_dict())), schema)


def test_filters() -> None:
    trip = take_trip(tracer.load_scenario("six-cuts"))
    assert {hop.kind for hop in trip.filter(axis="pp")} == {"pp_send"}
    assert len(trip.filter(layer=1)) == 5
    crossing = trip.filter(tier="ib")
    assert sum(hop.crossings for hop in crossing) == trip.log.node_crossings
    assert trip.filter(axis="ep", layer=3, tier="ib") == ()


def test_log_says_where_counts_come_from() -> None:
    tables = tracer.load_scenario("six-cuts").to_dict()
    tables["mesh"] |= {"dp": 3, "ep": 4, "edp": None, "pp": 3}
    tables["cluster"] |= {"nodes": None}
    tables["picks"] = {}
    tables["token"] |= {"prompt": 61, "position": 3}
    text = str(take_trip(tracer.Scenario.from_dict(tables)))
    assert "picks of 8 MoE layers drawn uniformly without repeats, seed 0" in text
    assert "layers split unevenly over stages: 3, 3, 2" in text
    assert "prompt padded by 3 rows to 64" in text
    assert "4 GPUs of the cluster hold no rank" in text


def test_dwdp_pulls_are_tallied_apart_and_said_loudly() -> None:
    tables = tracer.load_scenario("six-cuts").to_dict()
    tables["mesh"]["contract"] = "dwdp"
    trip = take_trip(tracer.Scenario.from_dict(tables))
    expert_bytes = 3 * 4096 * 2048 * 2
    assert trip.log.weight_bytes == 8 * 30 * expert_bytes
    assert trip.log.node_crossings_by_axis["ep"] == 0
    assert "WARNING: the dwdp group spans nodes" in str(trip)

"""The published trip row by row, and the same mesh swapped, at other tokens and with other picks."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from comparing import differences, engine_trip
from oracle import walk

import tracer

Scenario = dict[str, Any]

#: (after which hop: layer and kind) -> GPUs touched, node crossings, comm ops; as published.
PUBLISHED = [
    ((1, "all_gather"), (2, 0, 1)),
    ((1, "reduce_scatter"), (4, 0, 3)),
    ((1, "combine"), (7, 2, 5)),
    ((4, "combine"), (11, 6, 20)),
    ((4, "pp_send"), (12, 7, 21)),
    ((8, "combine"), (23, 15, 41)),
]
#: The expert GPUs of each layer, as published.
EXPERT_GPUS = [(2, 13), (11, 4), (15, 8), (1, 6), (23, 28), (16, 25), (20, 29), (21, 31)]


@pytest.fixture(scope="module")
def six_cuts() -> Scenario:
    return tracer.load_scenario("six-cuts").to_dict()


@pytest.fixture(scope="module")
def trip(six_cuts: Scenario) -> dict[str, Any]:
    return engine_trip(six_cuts)


def find(trip: dict[str, Any], layer: int, kind: str) -> dict[str, Any]:
    (hop,) = [hop for hop in trip["hops"] if (hop["layer"], hop["kind"]) == (layer, kind)]
    return hop


@pytest.mark.parametrize(("after", "counts"), PUBLISHED, ids=lambda value: str(value))
def test_published_row(trip: dict[str, Any], after: tuple[int, str], counts: tuple[int, int, int]) -> None:
    tally = find(trip, *after)["tally"]
    assert (tally["gpus_touched"], tally["node_crossings"], tally["comm_ops"]) == counts


def test_fourteen_crossings_are_ep_and_one_is_pp(trip: dict[str, Any]) -> None:
    by_axis = {axis: count for axis, count in trip["log"]["node_crossings_by_axis"].items() if count}
    assert by_axis == {"ep": 14, "pp": 1}


@pytest.mark.parametrize(("layer", "gpus"), list(enumerate(EXPERT_GPUS, start=1)))
def test_expert_gpus_of_a_layer(trip: dict[str, Any], layer: int, gpus: tuple[int, int]) -> None:
    """The copies end on the GPUs named: relay 3 (stage 1: 19) only forwards, home 11 (27) needs no copy."""
    home, relay = (11, 3) if layer <= 4 else (27, 19)
    reached = {move["dst"] for move in find(trip, layer, "dispatch")["transfers"]}
    assert reached - {relay} == set(gpus) - {home}


def test_kv_ends_on_the_replicas_gpus(trip: dict[str, Any]) -> None:
    for layer in range(1, 9):
        moves = find(trip, layer, "kv_exchange")["transfers"]
        stage = 0 if layer <= 4 else 16
        assert {(move["src"] - stage, move["dst"] - stage) for move in moves} == {(11, 9), (10, 8)}


def test_the_send_goes_from_11_to_27(trip: dict[str, Any]) -> None:
    (move,) = find(trip, 4, "pp_send")["transfers"]
    assert (move["src"], move["dst"], move["tier"]) == (11, 27, "ib")


def test_layer_8_is_dead_after_its_kv(trip: dict[str, Any]) -> None:
    dead = [(hop["layer"], hop["kind"]) for hop in trip["hops"] if hop["dead"]]
    assert dead == [(8, "reduce_scatter"), (8, "dispatch"), (8, "combine")]


def test_every_hop_against_the_oracle(six_cuts: Scenario, trip: dict[str, Any]) -> None:
    assert differences(trip, walk(six_cuts)) == []


def changed(six_cuts: Scenario, **tables: Scenario) -> Scenario:
    scenario = copy.deepcopy(six_cuts)
    for table, keys in tables.items():
        scenario[table] = {**(scenario.get(table) or {}), **keys}
    return scenario


def test_swapping_pp_and_dp(six_cuts: Scenario) -> None:
    """The send moves onto NVLink when a stage's two halves share a node; the picks stay."""
    swapped = changed(six_cuts, mesh={"order": "tp-cp-pp-dp"})
    trip, oracle = engine_trip(swapped), walk(swapped)
    assert differences(trip, oracle) == []
    assert "pp" not in oracle.log["node_crossings_by_axis"]
    assert oracle.log["node_crossings"] > 15


@pytest.mark.parametrize("position", [0, 15, 16, 31, 32, 40, 48, 62, 63])
@pytest.mark.parametrize("replica", [0, 3])
def test_other_tokens(six_cuts: Scenario, replica: int, position: int) -> None:
    scenario = changed(six_cuts, token={"replica": replica, "position": position})
    assert differences(engine_trip(scenario), walk(scenario)) == []


def test_the_last_position_alone_feeds_the_head(six_cuts: Scenario) -> None:
    trip = engine_trip(changed(six_cuts, token={"position": 63}))
    (copy_hop,) = find(trip, 8, "head_copy")["transfers"]
    (gather,) = find(trip, 8, "logits_gather")["transfers"]
    home = trip["hops"][-1]["transfers"][0]["dst"]
    assert (copy_hop["src"], copy_hop["dst"]) == (home, home - 1) == (25, 24)
    assert (gather["src"], gather["dst"]) == (24, 25)
    assert not any(hop["dead"] for hop in trip["hops"])


@pytest.mark.parametrize("seed", range(8))
def test_other_picks(six_cuts: Scenario, seed: int) -> None:
    draw = random.Random(seed)
    scenario = changed(six_cuts, picks={str(layer): draw.sample(range(32), 2) for layer in range(1, 9)})
    assert differences(engine_trip(scenario), walk(scenario)) == []


@pytest.mark.parametrize("sp", ["off", "before_dispatch"])
@pytest.mark.parametrize("dispatch", ["high_throughput", "low_latency"])
@pytest.mark.parametrize("contract", ["ep", "ag_rs"])
def test_other_ways_to_move(six_cuts: Scenario, sp: str, dispatch: str, contract: str) -> None:
    scenario = changed(six_cuts, mesh={"sp": sp, "dispatch": dispatch, "contract": contract})
    assert differences(engine_trip(scenario), walk(scenario)) == []

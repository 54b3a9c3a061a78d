"""The oracle alone: the published numbers, and that a comparison with it can fail."""

from __future__ import annotations

import copy
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from comparing import differences
from hypothesis import given
from oracle import GROUP_NAMES, OracleHop, OracleMesh, OracleTrip, walk
from strategies import few, meshes, scenarios

#: Picks that sit on the GPUs the published trip names: GPU g of a stage holds experts 2s and 2s + 1.
PAIRS = [(2, 13), (11, 4), (15, 8), (1, 6), (23, 28), (16, 25), (20, 29), (21, 31)]
SIX_CUTS: dict[str, Any] = {
    "cluster": {"nodes": 4, "gpus_per_node": 8},
    "model": {
        **{"layers": 8, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128},
        **{"experts": 32, "top_k": 2, "expert_hidden": 2048, "vocab": 128_000},
    },
    "mesh": {"order": "tp-cp-dp-pp", "tp": 2, "cp": 2, "dp": 4, "pp": 2, "ep": 16},
    "token": {"replica": 2, "position": 40, "prompt": 64},
    "picks": {str(layer): [2 * (gpu % 16) for gpu in pair] for layer, pair in enumerate(PAIRS, start=1)},
}


def as_json(trip: OracleTrip) -> dict[str, Any]:
    """The oracle's trip in the engine's JSON form."""
    keys = ("src", "dst", "bytes", "tier", "role")

    def hop_json(hop: OracleHop) -> dict[str, Any]:
        transfers = [dict(zip(keys, move, strict=True)) for move in hop.moves]
        fields = {key: getattr(hop, key) for key in ("kind", "axis", "layer", "stage", "dead")}
        return {**fields, "transfers": transfers, "tally": dict(hop.tally)}

    hops = [hop_json(hop) for hop in trip.hops]
    return {"touched": sorted(trip.touched), "log": copy.deepcopy(trip.log), "hops": hops}


def test_six_cuts_is_23_gpus_15_crossings_41_ops() -> None:
    log = walk(SIX_CUTS).log
    assert (log["gpus_touched"], log["node_crossings"], log["comm_ops"]) == (23, 15, 41)
    assert log["node_crossings_by_axis"] == {"ep": 14, "pp": 1}


def test_six_cuts_groups_of_gpu_11() -> None:
    mesh = OracleMesh(SIX_CUTS)
    assert mesh.group(11, "dp") == [3, 7, 11, 15]
    assert mesh.group(11, "replica") == [8, 9, 10, 11]
    assert mesh.group(11, "cp") == [9, 11]
    assert mesh.group(11, "tp") == [10, 11]
    assert mesh.group(11, "pp") == [11, 27]
    assert mesh.group(27, "ep") == list(range(16, 32))


def _one_more_op(trip: dict[str, Any]) -> None:
    trip["log"]["comm_ops"] += 1


def _one_gpu_less(trip: dict[str, Any]) -> None:
    trip["touched"].pop()


def _a_byte_more(trip: dict[str, Any]) -> None:
    trip["log"]["bytes_by_tier"]["ib"] += 1


def _crossing_of_another_axis(trip: dict[str, Any]) -> None:
    trip["log"]["node_crossings_by_axis"] = {"ep": 13, "pp": 2}


def _a_lost_transfer(trip: dict[str, Any]) -> None:
    trip["hops"][4]["transfers"].pop()


def _another_relay(trip: dict[str, Any]) -> None:
    trip["hops"][4]["transfers"][0]["dst"] += 1


def _a_lost_hop(trip: dict[str, Any]) -> None:
    trip["hops"].pop()


def _alive(trip: dict[str, Any]) -> None:
    trip["hops"][-1]["dead"] = False


def _a_tally_off_by_one(trip: dict[str, Any]) -> None:
    trip["hops"][3]["tally"]["gpus_touched"] += 1


MUTATIONS = [
    (_one_more_op, "comm_ops"),
    (_one_gpu_less, "touched"),
    (_a_byte_more, "bytes_by_tier"),
    (_crossing_of_another_axis, "node_crossings_by_axis"),
    (_a_lost_transfer, "layer 1 dispatch"),
    (_another_relay, "layer 1 dispatch"),
    (_a_lost_hop, "hops"),
    (_alive, "layer 8 combine dead"),
    (_a_tally_off_by_one, "layer 1 reduce_scatter tally"),
]


@pytest.mark.parametrize(("mutate", "named"), MUTATIONS, ids=[mutate.__name__ for mutate, _ in MUTATIONS])
def test_a_changed_count_is_found_and_named(mutate: Any, named: str) -> None:
    oracle = walk(SIX_CUTS)
    trip = as_json(oracle)
    assert differences(trip, oracle) == []
    mutate(trip)
    found = differences(trip, oracle)
    assert len(found) == 1
    assert found[0].startswith(named)


@few
@given(scenarios())
def test_drawn_scenarios_are_walkable_and_add_up(scenario: dict[str, Any]) -> None:
    trip = walk(scenario)
    everything = [move for hop in trip.hops for move in hop.moves]
    assert trip.log["bytes"] == sum(size for _, _, size, _, role in everything if role != "weights")
    assert trip.log["node_crossings"] == sum(
        tier == "ib" and role != "weights" for _, _, _, tier, role in everything
    )
    assert all(src != dst for src, dst, _, _, _ in everything)
    assert trip.log["gpus_touched"] == len(trip.touched) <= trip.log["world_size"]


@few
@given(meshes(layers=4))
def test_every_group_list_partitions_the_ranks(mesh: dict[str, Any]) -> None:
    plain = OracleMesh({"mesh": mesh})
    for name in GROUP_NAMES:
        members = [rank for group in plain.groups(name) for rank in group]
        assert sorted(members) == list(range(plain.world)), name


def count_all_pairs(order: str) -> dict[str, Fraction]:
    """Transfers of GPU 11's expert trip by tier, averaged over all pairs of the 32 experts, one layer."""
    pairs = list(combinations(range(32), 2))
    moves: Counter[str] = Counter()
    for pair in pairs:
        scenario = copy.deepcopy(SIX_CUTS)
        scenario["model"]["layers"] = 2
        scenario["mesh"]["order"] = order
        scenario["picks"] = {"1": list(pair), "2": list(pair)}
        for hop in walk(scenario).hops:
            if hop.layer == 1 and hop.axis == "ep":
                moves.update(tier for _, _, _, tier, _ in hop.moves)
    return {tier: Fraction(count, len(pairs)) for tier, count in moves.items()}


def hit(experts: int) -> Fraction:
    """The chance that uniform top-2 of 32 without repeats picks one of so many experts."""
    return 1 - Fraction(math.comb(32 - experts, 2), math.comb(32, 2))


def test_all_picks_average_to_the_closed_forms() -> None:
    counts = count_all_pairs("tp-cp-dp-pp")
    assert counts == {"ib": 2 * hit(16), "nvlink": 2 * 14 * hit(2)}
    assert round(float(counts["ib"]) / 4, 3) == 0.379
    assert round(float(counts["nvlink"]) / 4, 3) == 0.861


def test_all_picks_average_to_the_closed_forms_when_swapped() -> None:
    counts = count_all_pairs("tp-cp-pp-dp")
    assert counts["ib"] == 2 * 3 * hit(8)
    assert round(float(counts["ib"]) / 4, 3) == 0.665

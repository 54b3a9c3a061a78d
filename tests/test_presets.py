"""The deployments that ship, redundant experts in a few words, and shared experts that are routed."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from comparing import differences, engine_trip
from layout_cases import read
from oracle import walk

import tracer
from tracer.scenario.placement import Placement, redundant_slots
from tracer.scenario.scenario import Scenario as EngineScenario
from tracer.traffic.dispatch import expected_copies
from tracer.trip.trip import take_trip

Scenario = dict[str, Any]

MESHES = {
    "six-cuts": (32, 16, 4),
    "six-cuts-decode": (32, 16, 4),
    "six-cuts-pp-inside-dp": (32, 16, 4),
    "deepseek-v3-prefill-ep32": (32, 32, 4),
    "deepseek-v3-prefill-ep32-tp4": (32, 32, 4),
    "deepseek-v3-decode-ep144": (144, 144, 18),
    "deepseek-v3-decode-ep320": (320, 320, 40),
    "deepseek-v3-ep64": (64, 64, 8),
    "mixtral-8x7b-ep8": (8, 8, 1),
    "mixtral-8x7b-tp8": (8, 1, 1),
    "gpt-oss-120b-dep4": (4, 4, 1),
    "gpt-oss-120b-dwdp4": (4, 4, 1),
    "sglang-prefill-ep32": (32, 32, 4),
    "sglang-decode-ep72": (72, 72, 9),
    "hybrid-tp4-ep8": (32, 8, 4),
    "hybrid-tp8-ep4": (32, 4, 4),
    "llama-3.1-405b": (64, 1, 8),
    "qwen3-235b": (16, 16, 2),
    "kimi-k2": (32, 32, 4),
    "gb200-nvl72": (72, 72, 18),
}
SLOTS_A_GPU = {
    "deepseek-v3-prefill-ep32": 9,
    "deepseek-v3-prefill-ep32-tp4": 9,
    "deepseek-v3-decode-ep144": 2,
    "deepseek-v3-decode-ep320": 1,
    "deepseek-v3-ep64": 4,
    "sglang-prefill-ep32": 9,
    "sglang-decode-ep72": 4,
    "gb200-nvl72": 4,
    "kimi-k2": 12,
    "hybrid-tp4-ep8": 32,
}


@pytest.mark.parametrize("name", MESHES)
def test_mesh_of_a_preset(name: str) -> None:
    scenario = tracer.load_scenario(name)
    assert (scenario.mesh.world_size, scenario.mesh.ep, scenario.cluster.nodes) == MESHES[name]
    assert scenario.name == name
    if name in SLOTS_A_GPU and scenario.placement is not None:
        counts = {scenario.placement.slots_on(rank) for rank in range(scenario.mesh.ep)}
        assert counts == {SLOTS_A_GPU[name]}


def test_every_preset_is_looked_at() -> None:
    assert sorted(MESHES) == list(tracer.preset_names())


@pytest.mark.parametrize("name", tracer.preset_names())
def test_a_preset_has_a_source_and_a_trip_and_comes_back_equal(name: str) -> None:
    scenario = tracer.load_scenario(name)
    assert scenario.source is not None
    cites = ("illustrative", "arXiv", "open-infra-index", "lm-sys blog", "sgl-project/sglang PR")
    assert any(word in scenario.source for word in cites)
    assert EngineScenario.from_dict(scenario.to_dict()) == scenario
    assert EngineScenario.from_toml(scenario.to_toml()) == scenario
    trip = take_trip(scenario)
    assert trip.log.gpus_touched >= 1
    assert scenario.plan.dispatch == ("low_latency" if scenario.phase == "decode" else "high_throughput")


@pytest.mark.parametrize("name", ["deepseek-v3-prefill-ep32", "deepseek-v3-prefill-ep32-tp4"])
def test_every_prefill_gpu_has_its_eight_and_one_of_its_node(name: str) -> None:
    """V3 report, 3.4.1: eight experts and a redundant one, rearranged inside a node."""
    placement = tracer.load_scenario(name).placement
    assert placement is not None
    for rank in range(32):
        *own, extra = placement.experts_of(rank)
        assert own == list(range(8 * rank, 8 * rank + 8))
        assert extra // 8 // 8 == rank // 8
        assert extra // 8 != rank


@pytest.mark.parametrize("name", ["sglang-prefill-ep32", "sglang-decode-ep72"])
def test_sglang_starts_with_expert_s_mod_256_in_slot_s(name: str) -> None:
    placement = tracer.load_scenario(name).placement
    assert placement is not None
    assert placement.slots == tuple(slot % 256 for slot in range(288))


def test_ep320_has_one_expert_a_gpu_and_64_for_copies_and_the_shared_one() -> None:
    scenario = tracer.load_scenario("deepseek-v3-decode-ep320")
    placement = scenario.placement
    assert placement is not None
    assert placement.slots is not None
    assert placement.slots[:256] == tuple(range(256))
    assert placement.slots[256:].count(256) == 32
    assert len(set(placement.slots[256:]) - {256}) == 32
    assert all(len(picks) == 9 and picks[8] == 256 for picks in scenario.layer_picks().values())
    text = str(take_trip(scenario))
    assert "shared experts are routed: expert 256 is in every pick" in text
    assert scenario.model.experts == 256


def test_node_limited_routing_keeps_a_token_on_four_nodes() -> None:
    scenario = tracer.load_scenario("deepseek-v3-ep64")
    for position in range(0, 200, 20):
        trip = take_trip(scenario.with_token(position=position))
        for hop in trip.filter(axis="ep"):
            nodes = {scenario.cluster.node_of(gpu) for gpu in hop.touched}
            assert len(nodes - {scenario.cluster.node_of(hop.transfers[0].src)}) <= 4


def test_one_nvlink_domain_has_no_crossing() -> None:
    log = take_trip(tracer.load_scenario("gb200-nvl72")).log
    assert (log.node_crossings, log.bytes_by_tier["ib"]) == (0, 0)


@pytest.mark.parametrize(
    "case", [case for case in read("expert_placement") if "experts_by_ep_rank" in case], ids=str
)
def test_framework_placements_as_slot_tables(case: dict[str, Any]) -> None:
    """A table that lists what a framework placed is that placement, wherever it can be written as one."""
    by_rank, experts = case["experts_by_ep_rank"], case["num_experts"]
    if len({len(held) for held in by_rank}) > 1:
        with pytest.raises(tracer.ConfigError, match=r"must divide over ep"):
            Placement.table([e for held in by_rank for e in held], len(by_rank), experts)
        return
    table = Placement.table([e for held in by_rank for e in held], len(by_rank), experts)
    assert [list(table.experts_of(rank)) for rank in range(len(by_rank))] == by_rank


# -- redundant experts -----------------------------------------------------------------------------------


def moe(placement: Scenario, **mesh: Any) -> Scenario:
    model = {"layers": 2, "hidden": 8, "heads": 2, "kv_heads": 2, "head_dim": 4, "vocab": 10}
    model |= {"experts": 8, "top_k": 2, "expert_hidden": 4, "shared_experts": 1}
    return {"model": model, "mesh": {"dp": 4, "ep": 4, **mesh}, "placement": placement}


def test_redundant_experts_are_a_table_like_any_other() -> None:
    scenario = EngineScenario.from_dict(moe({"redundant": 4}))
    assert scenario.placement == Placement.table([*range(8), *range(4)], 4, 8)
    assert scenario.to_dict()["placement"]["slots"] == [*range(8), *range(4)]
    listed = EngineScenario.from_dict(moe({"redundant": [7, 5, 3, 1], "redundant_at": "each_rank"}))
    assert listed.placement == Placement.table([0, 1, 7, 2, 3, 5, 4, 5, 3, 6, 7, 1], 4, 8)
    assert redundant_slots(3, 1, 7) == (0, 1, 2, 0, 1, 2, 0, 1, 2, 0)
    assert redundant_slots(4, 2, 0) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        ({"redundant": 3}, r"placement\.redundant=3 makes 11 slots .* over ep 4; try 4 copies"),
        ({"redundant": -1}, r"placement\.redundant=-1 must be a whole number"),
        ({"redundant": "8"}, r"placement\.redundant='8' must be a whole number"),
        ({"redundant": True}, r"placement\.redundant=True must be a whole number"),
        ({"redundant": [8] * 4}, r"placement\.redundant\[0\]=8 must be an expert from 0 to 7"),
        ({"redundant": [0, "1", 2, 3]}, r"placement\.redundant\[1\]='1' must be a whole number"),
        ({"redundant": 10**9}, r"placement\.redundant=1000000000 makes more than 1,048,576 slots"),
        (
            {"redundant": [1, 2], "redundant_at": "each_rank"},
            r"placement\.redundant='2 copies' beside 8 experts",
        ),
        (
            {"redundant": 4, "redundant_at": "start"},
            r"placement\.redundant_at='start' must be end or each_rank",
        ),
        (
            {"redundant": 4, "slots": [0] * 12},
            r"placement\.redundant=4 goes with linear placement, not with 'slots'",
        ),
        ({"redundant": 4, "kind": "round_robin"}, r"goes with linear placement, not with 'round_robin'"),
        ({"redundant": 4, "remainder": "first"}, r"goes with linear placement, not with 'remainder'"),
        ({"redundent": 4}, r"placement\.redundent=4 is not a known key; did you mean 'redundant'"),
        ({"slots_by_layer": {"3": [0] * 8}}, r"slots_by_layer\.3='a table' is for a layer without experts"),
    ],
)
def test_malformed_placements_are_named(placement: Scenario, message: str) -> None:
    with pytest.raises(tracer.ConfigError, match=message):
        EngineScenario.from_dict(moe(placement))


def test_redundant_experts_need_experts() -> None:
    tables: Scenario = {"model": {"layers": 1}, "placement": {"redundant": 4}}
    with pytest.raises(
        tracer.ConfigError, match=r"placement\.redundant=4 places experts, but the model has none"
    ):
        EngineScenario.from_dict(tables)


# -- shared experts that are routed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "mesh", "message"),
    [
        (
            {"shared_experts": 0},
            {},
            r"mesh\.shared_routed=True needs a shared expert, and the model has none",
        ),
        ({"shared_hidden": 5}, {}, r"needs shared experts as wide as the routed \(4\), not 5"),
        (
            {},
            {"shared_tp": True},
            r"mesh\.shared_tp='own' slices a shared expert that shared_routed sends away",
        ),
        ({}, {"shared_routed": 1}, r"mesh\.shared_routed=1 must be true or false"),
    ],
)
def test_shared_experts_that_cannot_be_routed(model: Scenario, mesh: Scenario, message: str) -> None:
    tables = moe({"remainder": "first"}, **({"shared_routed": True} | mesh))
    tables["model"] |= model
    with pytest.raises(tracer.ConfigError, match=message):
        EngineScenario.from_dict(tables)


def test_a_model_without_experts_has_none_to_route() -> None:
    tables: Scenario = {"model": {"layers": 1, "dense_hidden": 4}, "mesh": {"shared_routed": True}}
    with pytest.raises(
        tracer.ConfigError, match=r"model\.experts is not given and is needed to place experts"
    ):
        EngineScenario.from_dict(tables)


def test_expected_copies_of_routed_shared_experts_are_the_mean_over_all_picks() -> None:
    """Every router's choice once on every home, counted by the oracle."""
    tables = moe({"kind": "table", "slots": [8, *range(8), 8, 0, 5]}, shared_routed=True)
    tables["model"] |= {"layers": 1, "experts": 8, "top_k": 1}
    tables["cluster"] = {"gpus_per_node": 2}
    copies = {"nvlink": 0.0, "ib": 0.0}
    cases = list(product(range(8), range(4), range(2)))
    for expert, replica, position in cases:
        case = tables | {"picks": {"1": [expert]}, "token": {"replica": replica, "position": position}}
        trip = walk(case)
        assert differences(engine_trip(case), trip) == []
        for hop in trip.hops:
            if hop.kind == "dispatch":
                for move in hop.moves:
                    copies[move[3]] += 1 / len(cases)
    expected = expected_copies(EngineScenario.from_dict(tables), 1)
    assert (expected.nvlink, expected.ib) == pytest.approx((copies["nvlink"], copies["ib"]))

"""Closed forms, orders, contracts and advice, on the reference mesh and by brute force."""

from __future__ import annotations

from itertools import combinations, permutations
from math import comb
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import scenarios

from tracer.errors import ConfigError
from tracer.scenario.files import load_scenario, preset_names
from tracer.scenario.scenario import Scenario as EngineScenario
from tracer.scenario.step import with_tokens
from tracer.traffic.advise import advise
from tracer.traffic.chance import HitChance
from tracer.traffic.contracts import compare_contracts
from tracer.traffic.orders import rank_orders, with_order
from tracer.traffic.traffic import comm_volume
from tracer.trip.hop import HopKind
from tracer.trip.trip import take_trip

Scenario = dict[str, Any]
SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def six_cuts(**mesh: Any) -> EngineScenario:
    tables = load_scenario("six-cuts").to_dict()
    tables["mesh"] |= {"edp": None, **mesh}
    return EngineScenario.from_dict(tables | {"picks": {}})


def elements(scenario: EngineScenario, axis: str) -> float:
    line = comm_volume(scenario).axis(axis)
    return 0.0 if line is None else line.elements / (64 * 4096)


def test_the_reference_mesh() -> None:
    """The right column of the closed forms, in units of T·d."""
    scenario = load_scenario("six-cuts")
    assert [elements(scenario, axis) for axis in ("tp", "cp", "ep", "pp")] == [0.5, 0.125, 1.0, 0.25]
    ep = comm_volume(scenario).axis("ep")
    assert ep is not None
    assert ep.ib_elements / (64 * 4096) == pytest.approx(0.379, abs=5e-4)
    assert ep.nvlink_elements / (64 * 4096) == pytest.approx(0.861, abs=5e-4)
    assert elements(six_cuts(contract="ag_rs"), "ep") == 7.5
    pull = comm_volume(six_cuts(contract="dwdp")).axis("ep")
    assert pull is not None
    assert pull.elements == 15 / 16 * 32 * 3 * 4096 * 2048
    assert elements(six_cuts(sp="off"), "ep") == 2.0
    assert elements(six_cuts(sp="off"), "pp") == 0.5
    assert elements(six_cuts(sp="off"), "tp") == 0.5
    swapped = comm_volume(with_order(scenario, "tp-cp-pp-dp")).axis("ep")
    assert swapped is not None
    assert swapped.ib_elements / (64 * 4096) == pytest.approx(0.665, abs=5e-4)


def test_json_has_what_the_table_has() -> None:
    report = comm_volume(load_scenario("six-cuts")).to_dict()
    ep = report["axes"]["ep"]
    assert ep["elements_per_gpu_per_layer"] == 64 * 4096
    assert ep["ib_elements_per_gpu_per_layer"] == pytest.approx(0.379 * 64 * 4096, rel=1e-3)
    assert (ep["tier"], ep["bytes"]) == ("ib", 64 * 4096 * 2)
    assert ep["seconds"] == pytest.approx(ep["bytes_by_tier"]["ib"] / 50e9)
    assert report["axes"]["pp"]["ratio_to_tp_per_layer"] == pytest.approx(1.125)
    assert report["axes"]["tp"]["formula"] == "2·(tp-1)/tp·(T/cp)·d"
    assert "0.7581" in ep["numbers"]


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.data())
def test_hit_chance_counts_every_choice(groups: int, share: int, kept: int, data: st.DataObject) -> None:
    """Against all choices of groups and of experts."""
    kept = min(kept, groups)
    top_k = data.draw(st.integers(1, kept * share))
    experts = groups * share
    target = data.draw(st.sets(st.integers(0, experts - 1)))
    found = HitChance(experts, top_k, groups, kept).of_set(target)
    hits = total = 0
    for chosen in combinations(range(groups), kept):
        pool = [expert for group in chosen for expert in range(group * share, (group + 1) * share)]
        for picks in combinations(pool, top_k):
            hits += bool(target & set(picks))
            total += 1
    assert found == pytest.approx(hits / total)


def test_v3s_group_limit_reaches_as_many_nodes_as_published() -> None:
    """Expected distinct nodes of top-8 of 256 on 8 nodes: 5.29 unlimited, 3.63 with 4 of 8 groups."""
    free, limited = HitChance(256, 8), HitChance(256, 8, 8, 4)
    assert 8 * free.of_set(range(32)) == pytest.approx(5.2946520)
    assert 8 * limited.of_set(range(32)) == pytest.approx(3.6290109)
    assert comb(256, 8) == 409_663_695_276_000


@settings(suppress_health_check=SLOW_DRAWS)
@given(scenarios(kinds=True))
def test_dense_axes_are_the_trips_own_bytes(drawn: Scenario) -> None:
    """Σ over all tokens of their trips' tp, cp and pp bytes, by tier; a state is handed on once for all."""
    scenario = EngineScenario.from_dict(drawn)
    unit = 2 * scenario.mesh.replica_size
    scenario = with_tokens(scenario, unit)
    totals: dict[tuple[str, str], int] = {}
    states = set()
    for replica in range(scenario.mesh.dp):
        for position in range(unit):
            for hop in take_trip(scenario.with_token(gpu=None, replica=replica, position=position)).hops:
                part = "head" if hop.part == "lm_head" else str(hop.axis)
                if hop.kind is HopKind.COUNTS_REDUCE:
                    continue  # once a layer from one root, and each token's trip shows it from its home
                for transfer in hop.transfers:
                    key = (part, str(transfer.tier))
                    if hop.kind is HopKind.STATE_PASS and (hop.layer, transfer) in states:
                        continue
                    states.add((hop.layer, transfer))
                    totals[key] = totals.get(key, 0) + transfer.bytes
    traffic = comm_volume(scenario)
    ranks = scenario.mesh.world_size
    for axis in ("tp", "cp", "pp"):
        lines = [line for line in traffic.lines if line.axis == axis and line.part != "counts_reduce"]
        for tier in ("nvlink", "ib"):
            expected = sum(getattr(line, f"{tier}_bytes") * line.times for line in lines)
            counted = totals.get((axis, tier), 0)
            assert expected * ranks / scenario.mesh.stages == pytest.approx(counted), (axis, tier)


def test_orders_of_the_reference_mesh() -> None:
    orders = rank_orders(load_scenario("six-cuts"))
    assert len(orders.ranked) == 24
    best = orders.ranked[0]
    assert (best.order, best.is_given, best.rank_by_time) == ("tp-cp-dp-pp", True, 1)
    assert best.why.startswith("tp, cp inside a node; ep sends 31% over IB")
    assert [e.ib_bytes for e in orders.ranked] == sorted(e.ib_bytes for e in orders.ranked)
    assert "* the scenario's own order" in str(orders)
    names = {order for entry in orders.ranked for order in (entry.order, *entry.same_as)}
    assert names == {"-".join(order) for order in permutations(("tp", "cp", "dp", "pp"))}


def test_orders_that_lay_ranks_out_alike_are_one() -> None:
    orders = rank_orders(load_scenario("deepseek-v3-prefill-ep32"))
    assert len(orders.ranked) == 1
    assert len(orders.ranked[0].same_as) == 23


def test_orders_that_megatron_refuses_are_named() -> None:
    orders = rank_orders(six_cuts(strict="megatron"))
    refused = dict(orders.refused)
    assert "tp-cp-pp-dp" in refused
    assert "needs the same pp groups in both views" in refused["tp-cp-pp-dp"]


def test_contracts_side_by_side() -> None:
    rows = {
        entry.name: entry for entry in compare_contracts(load_scenario("deepseek-v3-prefill-ep32")).entries
    }
    picks, gpus, nvlink_domains = (
        rows[f"ep, {name}"] for name in ("every pick", "one per GPU", "one per island")
    )
    assert picks.ib_bytes > gpus.ib_bytes > nvlink_domains.ib_bytes
    assert nvlink_domains.ib_bytes < rows["ag_rs"].ib_bytes < rows["tp"].ib_bytes
    assert rows["dwdp"].nvlink_bytes > 0


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_has_traffic_and_orders(name: str) -> None:
    scenario = load_scenario(name)
    traffic = comm_volume(scenario)
    assert traffic.lines
    assert "Assumes" in str(traffic)
    assert rank_orders(scenario).ranked


def test_advice_walks_the_chart() -> None:
    many = load_scenario("deepseek-v3-prefill-ep32")
    assert advise(many).recommended == "pure EP"
    hybrid = advise(many, "ttft")
    assert hybrid.recommended == "TP4 + EP"
    flops = {choice.name: choice.prompt_flops for choice in hybrid.choices}
    assert flops["TP4 + EP"] == pytest.approx(flops["pure EP"] / 4)
    assert advise(load_scenario("mixtral-8x7b-ep8")).recommended == "pure TP"
    with pytest.raises(ConfigError, match="objective='cheap' must be throughput or ttft"):
        advise(many, "cheap")
    with pytest.raises(ConfigError, match="the chart is of MoE models"):
        advise(load_scenario("llama-3.1-405b"))

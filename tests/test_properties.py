"""What must hold on any mesh, checked on drawn scenarios."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from comparing import engine_groups, engine_trip
from hypothesis import given
from hypothesis import strategies as st
from strategies import experts, few, meshes, models, scenarios, world_size

from tracer.mesh.mesh import RankGrid
from tracer.scenario.scenario import Scenario as EngineScenario

Scenario = dict[str, Any]
either_phase = st.one_of(scenarios(), scenarios(phase="decode"))
axes = st.lists(
    st.tuples(st.text("abcxyz", min_size=1, max_size=3), st.integers(1, 4)), min_size=1, max_size=5
)
grids = axes.map(dict).map(lambda sizes: RankGrid(tuple(sizes), tuple(sizes.values())))


def hops_of(trip: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [hop for hop in trip["hops"] if hop["kind"] == kind]


def with_mesh(scenario: Scenario, **changed: Any) -> Scenario:
    return {**scenario, "mesh": {**scenario.get("mesh", {}), **changed}}


@few
@given(grids)
def test_ranks_and_coordinates_are_a_bijection(grid: RankGrid) -> None:
    seen = {tuple(sorted(grid.coordinates(rank).items())) for rank in range(grid.size)}
    assert len(seen) == grid.size
    assert [grid.rank(grid.coordinates(rank)) for rank in range(grid.size)] == list(range(grid.size))


@few
@given(grids, st.data())
def test_groups_of_any_axes_partition_the_ranks(grid: RankGrid, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(grid.names), unique=True))
    groups = grid.groups(names)
    assert sorted(int(rank) for group in groups for rank in group) == list(range(grid.size))
    listed = {tuple(int(rank) for rank in group) for group in groups}
    assert {tuple(grid.group(rank, names)) for rank in range(grid.size)} == listed


@few
@given(meshes(layers=4))
def test_groups_of_both_views_partition_the_ranks(mesh: Scenario) -> None:
    for name, groups in engine_groups({"mesh": mesh}).items():
        assert sorted(rank for group in groups for rank in group) == list(range(world_size(mesh))), name


@few
@given(scenarios(contracts=["ep", "ag_rs"]))
def test_combine_mirrors_dispatch(scenario: Scenario) -> None:
    """Every copy that went out comes back the same way, whatever its size."""
    trip = engine_trip(scenario)
    pairs = list(zip(hops_of(trip, "dispatch"), hops_of(trip, "combine"), strict=True))
    for dispatch, combine in pairs:
        out = Counter((move["src"], move["dst"], move["tier"]) for move in dispatch["transfers"])
        back = Counter((move["dst"], move["src"], move["tier"]) for move in combine["transfers"])
        assert out == back


@few
@given(scenarios(contracts=["ep"]))
def test_relays_deliver_what_direct_messages_deliver(scenario: Scenario) -> None:
    """The GPUs reached are the same but for relays, and each gets one copy."""
    scenario = with_mesh(scenario, sp="megatron")
    relayed = hops_of(
        engine_trip(with_mesh(scenario, dispatch="high_throughput", routing_metadata=False)), "dispatch"
    )
    direct = hops_of(engine_trip(with_mesh(scenario, dispatch="low_latency")), "dispatch")
    for high, low in zip(relayed, direct, strict=True):
        arrivals = Counter(move["dst"] for move in high["transfers"])
        wanted = {move["dst"] for move in low["transfers"]}
        relays = {move["src"] for move in high["transfers"] if move["role"] == "forward"}
        assert wanted <= set(arrivals)
        assert set(arrivals) - wanted <= relays
        assert set(arrivals.values()) <= {1}
        assert {move["role"] for move in low["transfers"]} <= {"dispatch"}


@st.composite
def lone_gpus(draw: st.DrawFn) -> Scenario:
    """Any model on a mesh of ones."""
    layers = draw(st.integers(1, 4))
    model = draw(models(layers, 1))
    scenario: Scenario = {"model": model}
    if "experts" in model:
        scenario["placement"], scenario["picks"] = draw(experts(model, 1))
    return scenario


@few
@given(lone_gpus())
def test_a_mesh_of_ones_transfers_nothing(scenario: Scenario) -> None:
    trip = engine_trip(scenario)
    assert trip["touched"] == [0]
    assert [hop["kind"] for hop in trip["hops"]] == ["land"]
    log = trip["log"]
    assert (log["comm_ops"], log["node_crossings"], log["bytes"], log["world_size"]) == (0, 0, 0, 1)


@few
@given(scenarios(), st.randoms(use_true_random=False))
def test_renaming_islands_changes_no_count(scenario: Scenario, random: Any) -> None:
    """Whole islands trade names; everything keeps its place inside them."""
    cluster = scenario.get("cluster", {})
    trip = engine_trip(scenario)
    world, per_node = trip["log"]["world_size"], cluster.get("gpus_per_node", 8)
    nodes = cluster.get("nodes", -(-world // per_node))
    per_nvlink_domain = cluster.get("nodes_per_island", 1)
    names = list(range(nodes // per_nvlink_domain))
    random.shuffle(names)
    names.append(len(names))  # where islands don't divide the nodes, the last one is smaller and stays
    places = cluster.get("placement") or [[rank // per_node, rank % per_node] for rank in range(world)]
    renamed = [
        [names[node // per_nvlink_domain] * per_nvlink_domain + node % per_nvlink_domain, local]
        for node, local in places
    ]
    moved = {**scenario, "cluster": {**cluster, "nodes": nodes, "placement": renamed}}
    after = engine_trip(moved)
    assert after["log"] == trip["log"]
    assert after["touched"] == trip["touched"]


@few
@given(either_phase)
def test_the_log_adds_up(scenario: Scenario) -> None:
    """Bytes are the sum of the transfers, crossings those between islands, the last tally is the log."""
    trip = engine_trip(scenario)
    log = trip["log"]
    moves = [move for hop in trip["hops"] for move in hop["transfers"] if move["role"] != "weights"]
    assert log["bytes"] == sum(move["bytes"] for move in moves) == sum(log["bytes_by_tier"].values())
    assert log["node_crossings"] == sum(move["tier"] == "ib" for move in moves)
    assert log["node_crossings"] == sum(log["node_crossings_by_axis"].values())
    for key, value in trip["hops"][-1]["tally"].items():
        assert log[key] == value
    assert {rank for move in moves for rank in (move["src"], move["dst"])} <= set(trip["touched"])


@few
@given(either_phase)
def test_scenarios_round_trip_through_toml_and_json(scenario: Scenario) -> None:
    there = EngineScenario.from_dict(scenario)
    assert EngineScenario.from_dict(there.to_dict()) == there
    assert EngineScenario.from_dict(json.loads(json.dumps(there.to_dict()))) == there
    assert EngineScenario.from_toml(there.to_toml()) == there

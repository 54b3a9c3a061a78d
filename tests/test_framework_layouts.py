"""Groups, expert placement and routing paths as the frameworks themselves make them."""

from __future__ import annotations

from typing import Any

import pytest
from comparing import engine_trip
from layout_cases import FRAMEWORKS, ORDERED, Case, cases, covered, embedding_cases, read
from oracle.ranks import count_up

from tracer.mesh.mesh import RankGrid
from tracer.scenario.placement import Placement

CASES = cases()
PLACEMENTS = [case for case in read("expert_placement") if "experts_by_ep_rank" in case]
DWDP = [case for case in read("expert_placement") if "local_range_by_rank" in case]


def odometer_groups(case: Case) -> list[list[int]]:
    """The case's groups by counting up: the ranks that differ only on the varying axes."""
    layout = case.layout
    readings = count_up(list(layout.names), dict(zip(layout.names, layout.sizes, strict=True)))
    found: dict[tuple[int, ...], list[int]] = {}
    for rank, reading in enumerate(readings):
        fixed = tuple(reading[axis] for axis in layout.names if axis not in layout.varying)
        found.setdefault(fixed, []).append(rank)
    return list(found.values())


def engine_groups(case: Case) -> list[list[int]]:
    """The case's groups from the engine, members in the order the framework walks them."""
    layout = case.layout
    grid = RankGrid(layout.names, layout.sizes)
    groups = [[int(rank) for rank in group] for group in grid.groups(layout.varying)]
    if layout.walked_first:
        slowest_first = layout.walked_first[::-1]
        for group in groups:
            group.sort(key=lambda rank: [grid.coordinates(rank)[axis] for axis in slowest_first])
    return [[layout.first_rank + rank for rank in group] for group in groups]


def as_sets(groups: list[list[int]]) -> set[frozenset[int]]:
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_group_lists(case: Case) -> None:
    groups = engine_groups(case)
    assert as_sets(groups) == as_sets(case.expected)
    if case.name in ORDERED or case.layout.walked_first:
        assert {tuple(group) for group in groups} == {tuple(group) for group in case.expected}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_group_lists_by_counting_up(case: Case) -> None:
    shifted = [[case.layout.first_rank + rank for rank in group] for group in odometer_groups(case)]
    assert as_sets(shifted) == as_sets(case.expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_ranks_group_is_in_the_list(case: Case) -> None:
    layout = case.layout
    grid = RankGrid(layout.names, layout.sizes)
    listed = as_sets(case.expected)
    for rank in range(grid.size):
        group = grid.group(rank, layout.varying)
        assert rank in group
        assert frozenset(layout.first_rank + member for member in group) in listed


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_grid_covers_the_world(case: Case) -> None:
    """But Megatron's grid with rank_offset, which starts at rank 4 of 8."""
    assert covered(case.layout) + case.layout.first_rank == case.world_size


@pytest.mark.parametrize(
    ("embedding", "ends"),
    [case[1:] for case in embedding_cases()],
    ids=[case[0] for case in embedding_cases()],
)
def test_megatron_embedding_groups_are_the_ends_of_the_pipelines(
    embedding: list[list[int]], ends: list[list[int]]
) -> None:
    assert as_sets(embedding) == as_sets(ends)


def test_every_case_has_a_source() -> None:
    for name in (*FRAMEWORKS, "deepep", "expert_placement"):
        assert all(case["source"] for case in read(name)), name


# -- experts ---------------------------------------------------------------------------------------------


def placement_of(case: dict[str, Any]) -> Placement:
    """The placement a framework's words stand for."""
    make = {"linear": Placement.linear, "round_robin": Placement.round_robin}[case["placement"]]
    experts, ep = case["num_experts"], case["ep_size"]
    return make(experts, ep) if experts % ep == 0 else make(experts, ep, remainder="first")


@pytest.mark.parametrize(
    "case", PLACEMENTS, ids=lambda case: f"{case['placement']} {case['num_experts']} on {case['ep_size']}"
)
def test_expert_placement(case: dict[str, Any]) -> None:
    placement = placement_of(case)
    for ep_rank, experts in enumerate(case["experts_by_ep_rank"]):
        assert list(placement.experts_of(ep_rank)) == experts
        for expert in experts:
            assert placement.ep_ranks_of(expert) == (ep_rank,)


@pytest.mark.parametrize(
    "case", DWDP, ids=lambda case: f"{case['framework']} {len(case['local_range_by_rank'])}"
)
def test_dwdp_ranges_that_do_not_overlap_are_linear(case: dict[str, Any]) -> None:
    ranges = case["local_range_by_rank"]
    placement = Placement.linear(ranges[-1][1], len(ranges))
    for rank, (start, stop) in enumerate(ranges):
        assert list(placement.experts_of(rank)) == list(range(start, stop))


# -- paths -----------------------------------------------------------------------------------------------


def routing_scenario(
    case: dict[str, Any], picks: list[int], per_gpu: int, low_latency: bool
) -> dict[str, Any]:
    """One MoE layer of attention replicas, EP over all of them, the token on GPU `src`."""
    world = case["world_size"]
    return {
        "cluster": {"gpus_per_node": case["gpus_per_node"]},
        "model": {
            **{"layers": 1, "hidden": 7168, "heads": 8, "kv_heads": 8, "head_dim": 128, "vocab": 1000},
            **{"experts": per_gpu * world, "top_k": len(picks), "expert_hidden": 2048},
        },
        "mesh": {"dp": world, "ep": world, "dispatch": "low_latency" if low_latency else "high_throughput"},
        "token": {"gpu": case["src"], "prompt": 16},
        "picks": {"1": picks},
    }


def dispatch_of(scenario: dict[str, Any]) -> list[tuple[int, int, str]]:
    """(src, dst, tier) of every transfer of the dispatch, sorted."""
    (hop,) = [hop for hop in engine_trip(scenario)["hops"] if hop["kind"] == "dispatch"]
    return sorted((move["src"], move["dst"], move["tier"]) for move in hop["transfers"])


def is_low_latency(case: dict[str, Any]) -> bool:
    return "low-latency" in case["kernel"]


@pytest.mark.parametrize("case", read("deepep"), ids=lambda case: f"{case['kernel'][:14]} {case['dsts']}")
def test_deepep_paths(case: dict[str, Any]) -> None:
    expected = {
        (hop["from"], hop["to"], "nvlink" if hop["link"] == "NVLink" else "ib")
        for path in case["paths"]
        for hop in path["hops"]
    }
    scenario = routing_scenario(case, case["dsts"], per_gpu=1, low_latency=is_low_latency(case))
    assert dispatch_of(scenario) == sorted(expected)


@pytest.mark.parametrize("case", read("deepep"), ids=lambda case: f"{case['kernel'][:14]} {case['dsts']}")
def test_two_experts_on_a_gpu_are_two_messages_only_in_low_latency(case: dict[str, Any]) -> None:
    picks = [2 * gpu + which for gpu in case["dsts"] for which in (0, 1)]
    once = dispatch_of(routing_scenario(case, picks, per_gpu=2, low_latency=False))
    twice = dispatch_of(routing_scenario(case, picks, per_gpu=2, low_latency=True))
    assert len(once) == len(set(once))
    remote = [gpu for gpu in case["dsts"] if gpu != case["src"]]
    assert sorted(dst for _, dst, _ in twice) == sorted(2 * remote)


@pytest.mark.parametrize("case", read("deepep"), ids=lambda case: f"{case['kernel'][:14]} {case['dsts']}")
def test_rails_and_nvlink_domains(case: dict[str, Any]) -> None:
    names = tuple(case["order"].split("-"))
    if len(names) == 1:  # low latency has no rails: it goes straight
        assert case["groups"] == {}
        return
    per_node = case["gpus_per_node"]
    grid = RankGrid(names, (per_node, case["world_size"] // per_node))
    rails, domains = (
        next(groups for name, groups in case["groups"].items() if word in name) for word in ("rail", "NVLink")
    )
    assert as_sets([list(map(int, group)) for group in grid.groups(names[1:])]) == as_sets(rails)
    assert as_sets([list(map(int, group)) for group in grid.groups(names[:1])]) == as_sets(domains)

"""Every group list that the frameworks' own code and documents give, reached from launch flags."""

from __future__ import annotations

import json
from typing import Any

import pytest
from frameworks.case_flags import FRAMEWORKS, Case, launch, read

from tracer.frameworks import from_flags
from tracer.frameworks.axis_groups import AxisGroups
from tracer.frameworks.layout import OUR_AXES, Layout
from tracer.mesh.grid import RankGrid

ORDERED = {"ep", "moe_ep", "pp", "pipe", "dcp"}
"""Groups whose member order means something: EP rank to experts, stages, DCP token order."""

LAUNCHED = [
    pytest.param(name, case, id=case["case_id"])
    for name in FRAMEWORKS
    for case in read(name)
    if launch(name, case) is not None
]
GRIDS = [
    pytest.param(case, id=case["case_id"])
    for name in FRAMEWORKS
    for case in read(name)
    if launch(name, case) is None
]


def layout_of(name: str, case: Case) -> Layout:
    made = launch(name, case)
    assert made is not None
    words, version = made
    return from_flags(
        FRAMEWORKS[name],
        words,
        gpus=case["world_size"],
        gpus_per_node=case.get("gpus_per_node") or 8,
        version=version,
    )


def as_sets(groups: list[list[int]]) -> set[frozenset[int]]:
    return {frozenset(group) for group in groups}


def own_name(name: str) -> str:
    return f"hierarchical_cp_{name}" if name in ("l1", "l2", "l3") else name


@pytest.mark.parametrize(("name", "case"), LAUNCHED)
def test_groups_are_the_frameworks_own(name: str, case: Case) -> None:
    found = layout_of(name, case).framework_groups
    for group, expected in case["groups"].items():
        made = found[own_name(group)]
        assert as_sets(made) == as_sets(expected), group
        assert sum(map(len, made)) == sum(map(len, expected)), group
        if group in ORDERED:
            assert {tuple(members) for members in made} == {tuple(members) for members in expected}, group


@pytest.mark.parametrize(("name", "case"), LAUNCHED)
def test_the_scenario_has_the_same_groups(name: str, case: Case) -> None:
    layout = layout_of(name, case)
    assert layout.world_size == case["world_size"]
    assert "not_expressible" not in {note.code for note in layout.warnings}
    for axis in OUR_AXES:
        ours = layout.groups[axis]
        assert as_sets(ours) == as_sets(layout.scenario.mesh.groups(axis).tolist()), axis
        assert sorted(rank for group in ours for rank in group) == list(range(layout.world_size)), axis


@pytest.mark.parametrize(("name", "case"), LAUNCHED)
def test_the_json_is_the_documents(name: str, case: Case) -> None:
    from tracer.scenario.scenario import BareScenario

    table = json.loads(json.dumps(layout_of(name, case).to_dict()))
    assert list(table) == [
        "schema",
        "world_size",
        "groups",
        "framework_groups",
        "expert_ranks",
        "warnings",
        "scenario",
    ]
    assert all(set(note) == {"code", "message", "fix"} for note in table["warnings"])
    assert BareScenario.from_dict(table["scenario"]).to_dict() == table["scenario"]


SIZES = {  # our axis: the framework's axes that make it up, dense and expert
    "megatron": {"tp": "tp", "cp": "cp", "dp": "dp", "pp": "pp"},
    "vllm": {"tp": "tp", "cp": "pcp", "dp": "dp external_dp", "pp": "pp"},
    "sglang": {"tp": "attn_tp", "cp": "attn_cp", "dp": "attn_dp", "pp": "pp"},
    "trtllm": {"tp": "tp", "cp": "cp", "dp": "dwdp dwdp_group", "pp": "pp"},
    "torchtitan": {"tp": "tp", "cp": "cp", "dp": "dp_shard dp_replicate", "pp": "pp"},
    "deepspeed": {"tp": "tp model", "cp": "sp", "dp": "dp data", "pp": "pipe"},
    "nanotron": {"tp": "tp", "cp": "cp", "dp": "dp", "pp": "pp"},
}
EXPERT_SIZES = {"ep": "ep moe_ep moe_cluster", "etp": "etp moe_tp", "edp": "edp"}


@pytest.mark.parametrize(("name", "case"), LAUNCHED)
def test_our_sizes_are_products_of_the_frameworks(name: str, case: Case) -> None:
    mesh = layout_of(name, case).scenario.mesh

    def product(words: str, sizes: dict[str, Any]) -> int:
        result = 1
        for word in words.split():
            result *= sizes.get(word, 1)
        return result

    if "l1" not in case["sizes"]:
        for axis, words in SIZES[name].items():
            assert mesh.size_of(axis) == product(words, case["sizes"]), axis
    for axis, words in EXPERT_SIZES.items():
        if case["expert_sizes"] and set(words.split()) & set(case["expert_sizes"]):
            assert mesh.size_of(axis) == product(words, case["expert_sizes"]), axis


@pytest.mark.parametrize("case", GRIDS)
def test_grids_without_flags(case: Case) -> None:
    """HyperCommGrid and DeviceMesh: the same walks over the same kind of grid, made in code."""
    names = tuple(case["order"].split("-"))
    grid = RankGrid(names, tuple(case["sizes"][name] for name in names))
    first_rank = 4 if "rank_offset=4" in case["note"] else 0
    for group, expected in case["groups"].items():
        axes = ("b", "a") if group == "a-b(raw member order)" else (group,)
        made = [[first_rank + rank for rank in members] for members in AxisGroups(grid, axes).listed()]
        assert {tuple(members) for members in made} == {tuple(members) for members in expected}

"""Launch flags of a scenario: what is written gives the same groups when it is read, or is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from draws import draws
from frameworks.drawn_flags import words
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import scenarios

from tests.test_command_line import run, run_json
from tracer.errors import ConfigError
from tracer.frameworks import from_flags
from tracer.frameworks.layout import OUR_AXES
from tracer.frameworks.registry import FRAMEWORKS
from tracer.frameworks.writing import launch_flags
from tracer.mesh.mesh import Mesh
from tracer.scenario.scenario import Scenario

WRITTEN = list(FRAMEWORKS)
FEWER = settings(
    max_examples=draws(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def groups_of(mesh: Mesh, axis: str) -> set[tuple[int, ...]]:
    return {tuple(sorted(group)) for group in mesh.groups(axis).tolist()}


@pytest.mark.parametrize("name", WRITTEN)
@FEWER
@given(tables=scenarios())
def test_what_is_written_reads_back_as_the_same_groups(name: str, tables: dict[str, Any]) -> None:
    scenario = Scenario.from_dict(tables)
    try:
        flags = launch_flags(scenario, name)
    except ConfigError as error:
        assert error.field == "--for"
        assert re.search("cannot (make|start)", error.rule)
        return
    layout = from_flags(name, flags.words, gpus=flags.gpus, model=scenario.model)
    for axis in OUR_AXES:
        assert {tuple(sorted(group)) for group in layout.groups[axis]} == groups_of(scenario.mesh, axis), axis


@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if name not in ("deepspeed", "maxtext")])
@FEWER
@given(data=st.data())
def test_what_a_launch_starts_can_be_written_again(name: str, data: st.DataObject) -> None:
    gpus = data.draw(st.sampled_from([4, 8, 16, 32]))
    try:
        layout = from_flags(name, data.draw(words(name)), gpus=gpus)
    except ConfigError:
        return
    if {"not_expressible", "external_dp", "idle_gpus", "order_is_a_keyword"} & {
        note.code for note in layout.warnings
    }:
        return
    try:
        flags = launch_flags(layout.scenario, name)
    except ConfigError as error:
        pytest.fail(f"{layout.scenario.mesh}: {error}")
    again = from_flags(name, flags.words, gpus=flags.gpus)
    for axis in OUR_AXES:
        mine, theirs = layout.groups[axis], again.groups[axis]
        assert {tuple(sorted(group)) for group in mine} == {tuple(sorted(group)) for group in theirs}, axis


def test_the_flags_of_the_reference_trip() -> None:
    line = run("flags", "six-cuts", "--for", "megatron").stdout
    assert line.split()[:2] == ["--tensor-model-parallel-size", "2"]
    assert "--expert-tensor-parallel-size 1 --sequence-parallel" in line
    table = run_json("flags", "six-cuts", "--for", "sglang", "--json")
    assert table["gpus"] == 32
    assert {note["code"] for note in table["warnings"]} == {"choice_differs"}


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("vllm", "pp is 2 ranks, 16 apart here and 2 ranks, 4 apart there"),
        ("deepspeed", "pp_size=1 only"),
        ("maxtext", "cannot make these groups"),
        ("accelerate", "cannot start this mesh"),
    ],
)
def test_a_mesh_that_a_framework_cannot_make_is_refused_by_axis(name: str, rule: str) -> None:
    result = run("flags", "six-cuts", "--for", name)
    assert result.exit_code == 2
    assert rule in result.stderr


CHOICES = [
    ("megatron", {"kv_exchange": "ulysses"}, "--cp-comm-type a2a"),
    ("megatron", {"kv_exchange": "hierarchical", "cp_inner": 2},
     "--cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2"),
    ("megatron", {"weight_shard": "zero1"}, "--use-distributed-optimizer"),
    ("megatron", {"weight_shard": "zero2"}, "--data-parallel-sharding-strategy optim_grads"),
    ("megatron", {"weight_shard": "fsdp"}, "--data-parallel-sharding-strategy optim_grads_params"),
    ("megatron", {"weight_shard": "hsdp", "weight_shard_size": 4}, "--num-distributed-optimizer-instances 4"),
    ("megatron", {"shared_tp": "own", "shared_overlap": True}, "--moe-shared-expert-overlap"),
    ("torchtitan", {"weight_shard": "hsdp", "weight_shard_size": 4, "cp": 1, "dp": 8},
     "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 4"),
    ("torchtitan", {"weight_shard": "fsdp", "weight_keep": True, "cp": 1},
     "--parallelism.fsdp_reshard_after_forward never"),
    ("torchtitan", {"cp": 1, "dp": 8},
     "--parallelism.data_parallel_replicate_degree 8 --parallelism.data_parallel_shard_degree 1"),
    ("deepspeed", {"weight_shard": "zero3", "cp": 1, "tp": 1}, "--zero-stage 3"),
    ("deepspeed", {"weight_shard": "zero3", "weight_prefetch": False, "cp": 1, "tp": 1},
     "--zero-stage 3 --stage3-prefetch-bucket-size 0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "choices", "flags"), CHOICES, ids=[f"{n} {f}" for n, _, f in CHOICES])
def test_the_choices_that_a_framework_has_are_written_and_read_back(
    name: str, choices: dict[str, Any], flags: str
) -> None:
    mesh = {"cp": 4, "dp": 4, "tp": 2} | choices
    model = {"layers": 4, "hidden": 256, "heads": 16, "dense_hidden": 512, "vocab": 1024}
    if "shared_tp" in choices:
        model |= {"experts": 8, "top_k": 2, "expert_hidden": 128, "shared_experts": 1}
    scenario = Scenario.from_dict({"mesh": mesh, "model": model})
    found = launch_flags(scenario, name)
    assert flags in str(found)
    said = {note.message.split()[0] for note in found.warnings}
    assert not said & {f"mesh.{key}" for key in choices}, found.warnings

"""Hybrid launches against plain counting: every rank's coordinates by the frameworks' own formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.errors import ConfigError
from tracer.frameworks import from_flags
from tracer.frameworks.layout import OUR_AXES, Layout

FEWER = settings(max_examples=draws(60))
SIZE = st.sampled_from([1, 1, 2, 2, 3, 4])
Key = Callable[[int], Any]


def by_key(world: int, key: Key) -> set[frozenset[int]]:
    """Ranks that agree on a key."""
    found: dict[Any, set[int]] = {}
    for rank in range(world):
        found.setdefault(key(rank), set()).add(rank)
    return {frozenset(ranks) for ranks in found.values()}


def check(layout: Layout, keys: dict[str, Key]) -> None:
    """Each named group is the ranks that agree on its key; the scenario has our groups."""
    groups = layout.framework_groups
    for name, key in keys.items():
        assert {frozenset(group) for group in groups[name]} == by_key(layout.world_size, key), name
    for axis in OUR_AXES:
        mesh_groups = layout.scenario.mesh.groups(axis).tolist()
        assert {frozenset(group) for group in layout.groups[axis]} == {frozenset(g) for g in mesh_groups}, (
            axis
        )


def test_the_examples_are_counted_right() -> None:
    assert by_key(4, lambda rank: rank % 2) == {frozenset({0, 2}), frozenset({1, 3})}


@FEWER
@given(tp=SIZE, pcp=SIZE, pp=SIZE, dp=SIZE, external=st.sampled_from([1, 1, 2]))
def test_vllm(tp: int, pcp: int, pp: int, dp: int, external: int) -> None:
    """A rank is dp_rank·(pp·pcp·tp) and its place in the engine; an EP group is a stage of all replicas."""
    flags = f"-tp {tp} -pcp {pcp} -pp {pp} -dp {dp} --enable-expert-parallel"
    layout = from_flags("vllm", flags, gpus=tp * pcp * pp * dp * external)
    engine = tp * pcp * pp

    def stage(rank: int) -> int:
        return rank % engine // (tp * pcp)

    keys: dict[str, Key] = {
        "tp": lambda rank: rank // tp,
        "pcp": lambda rank: (rank // (tp * pcp), rank % tp),
        "pp": lambda rank: (rank // engine, rank % (tp * pcp)),
        "dp": lambda rank: (rank // (engine * dp), rank % engine),
        "ep": lambda rank: (rank // (engine * dp), stage(rank)),
    }
    check(layout, keys)


@FEWER
@given(attn_tp=SIZE, attn_cp=SIZE, attn_dp=SIZE, pp=SIZE, data=st.data())
def test_sglang(attn_tp: int, attn_cp: int, attn_dp: int, pp: int, data: st.DataObject) -> None:
    tp = attn_tp * attn_cp * attn_dp
    ep = data.draw(st.sampled_from([size for size in range(1, tp + 1) if tp % size == 0]))
    moe_tp = tp // ep
    flags = f"--tp {tp} --pp-size {pp} --attn-cp-size {attn_cp} --attn-dp-size {attn_dp} --ep-size {ep}"
    layout = from_flags("sglang", flags, gpus=tp * pp)
    keys: dict[str, Key] = {
        "tp": lambda rank: rank // tp,
        "attn_tp": lambda rank: rank // attn_tp,
        "attn_cp": lambda rank: (rank // (attn_tp * attn_cp), rank % attn_tp),
        "moe_tp": lambda rank: rank // moe_tp,
        "moe_ep": lambda rank: (rank // tp, rank % moe_tp),
        "pp": lambda rank: rank % tp,
    }
    if attn_cp > 1:
        keys["moe_dp"] = keys["attn_cp"]
    check(layout, keys)


@FEWER
@given(
    cp=SIZE,
    tp=SIZE,
    pp=SIZE,
    helix=st.booleans(),
    attention_dp=st.booleans(),
    old=st.booleans(),
    data=st.data(),
)
def test_tensorrt_llm(
    cp: int, tp: int, pp: int, helix: bool, attention_dp: bool, old: bool, data: st.DataObject
) -> None:
    moe_world = tp * cp if helix else tp
    ep = data.draw(st.sampled_from([size for size in range(1, moe_world + 1) if moe_world % size == 0]))
    ep = ep if helix or cp == 1 else 1
    flags = ["--tp_size", str(tp), "--cp_size", str(cp), "--pp_size", str(pp), "--ep_size", str(ep)]
    flags += ["--cp_config", '{"cp_type": "HELIX"}'] if helix else []
    flags += ["--enable_attention_dp"] if attention_dp else []
    version = "1.1.0" if old else "1.2.0"
    layout = from_flags("trtllm", flags, gpus=tp * cp * pp, version=version)
    stage = tp * cp
    keys: dict[str, Key] = {
        "pp": lambda rank: rank % stage,
        "tp": lambda rank: (rank // stage, rank % stage // tp if old else rank % cp),
        "cp": lambda rank: (rank // stage, rank % tp if old else rank % stage // cp),
    }
    if helix or cp == 1:
        keys["moe_ep"] = lambda rank: rank // ep
        keys["moe_tp"] = lambda rank: (rank // moe_world, rank % ep)
    check(layout, keys)
    assert layout.scenario.mesh.dp == (tp if attention_dp else 1)


@FEWER
@given(tp=SIZE, cp=SIZE, shard=SIZE, replicate=SIZE, pp=SIZE, data=st.data())
def test_torchtitan(tp: int, cp: int, shard: int, replicate: int, pp: int, data: st.DataObject) -> None:
    region = tp * cp * shard
    ep = data.draw(st.sampled_from([size for size in range(1, region + 1) if region % size == 0]))
    sizes = {
        "tensor_parallel": tp, "context_parallel": cp, "data_parallel_replicate": replicate,
        "pipeline_parallel": pp, "expert_parallel": ep,
    }  # fmt: skip
    flags = [f"--parallelism.{name}_degree={size}" for name, size in sizes.items()]
    layout = from_flags("torchtitan", flags, gpus=region * replicate * pp)
    keys: dict[str, Key] = {
        "tp": lambda rank: rank // tp,
        "cp": lambda rank: (rank // (tp * cp), rank % tp),
        "dp_shard": lambda rank: (rank // region, rank % (tp * cp)),
        "fsdp": lambda rank: (rank // region, rank % tp),
        "dp_replicate": lambda rank: (rank // (region * replicate), rank % region),
        "batch": lambda rank: (rank // (region * replicate), rank % (tp * cp)),
        "loss": lambda rank: (rank // (region * replicate), rank % tp),
        "pp": lambda rank: rank % (region * replicate),
        "ep": lambda rank: rank // ep,
        "efsdp": lambda rank: (rank // region, rank % ep),
    }
    check(layout, keys)


@FEWER
@given(tp=SIZE, cp=SIZE, dp=SIZE, pp=SIZE, inside=st.booleans(), data=st.data())
def test_megatron(tp: int, cp: int, dp: int, pp: int, inside: bool, data: st.DataObject) -> None:
    stage = tp * cp * dp
    etp = data.draw(st.sampled_from([size for size in range(1, stage + 1) if stage % size == 0]))
    ep = data.draw(st.sampled_from([size for size in range(1, stage // etp + 1) if stage // etp % size == 0]))
    flags = (
        f"--tensor-model-parallel-size {tp} --context-parallel-size {cp} --pipeline-model-parallel-size {pp} "
        f"--expert-model-parallel-size {ep} --expert-tensor-parallel-size {etp}"
    )
    edp = stage // (etp * ep)
    if inside and pp > 1 and edp != dp:
        with pytest.raises(ConfigError, match=f"must be the same, but got {dp} and {edp}"):
            from_flags("megatron", f"{flags} --use-tp-pp-dp-mapping", gpus=stage * pp)
        return
    layout = from_flags("megatron", flags + " --use-tp-pp-dp-mapping" * inside, gpus=stage * pp)
    inner, experts = tp * cp, etp * ep
    keys: dict[str, Key] = {
        "tp": lambda rank: rank // tp,
        "cp": lambda rank: (rank // inner, rank % tp),
        "etp": lambda rank: rank // etp,
        "ep": lambda rank: (rank // experts, rank % etp),
        "etp-ep": lambda rank: rank // experts,
    }
    if inside and pp > 1:
        keys["pp"] = lambda rank: (rank // (inner * pp), rank % inner)
        keys["dp"] = lambda rank: rank % (inner * pp)
        keys["edp"] = lambda rank: rank % (experts * pp)
    else:
        keys["pp"] = lambda rank: rank % stage
        keys["dp"] = lambda rank: (rank // stage, rank % inner)
        keys["dp-cp"] = lambda rank: (rank // stage, rank % tp)
        keys["edp"] = lambda rank: (rank // stage, rank % experts)
    check(layout, keys)


@FEWER
@given(tp=SIZE, dp=SIZE, pp=SIZE, first=st.booleans(), data=st.data())
def test_deepspeed_lanes(tp: int, dp: int, pp: int, first: bool, data: st.DataObject) -> None:
    """The legacy rule: consecutive (or strided) members of each TP lane's own DP group."""
    ep = data.draw(st.sampled_from([size for size in range(1, dp + 1) if dp % size == 0]))
    flags = f"--num-mp {tp} --num-pp {pp} --ep_size {ep}"
    flags += " --use-data-before-expert-parallelism" if first else ""
    layout = from_flags("deepspeed", flags, gpus=tp * dp * pp)
    stage, edp = tp * dp, dp // ep

    def place(rank: int) -> int:
        return rank % stage // tp

    keys: dict[str, Key] = {
        "model": lambda rank: rank // tp,
        "data": lambda rank: (rank // stage, rank % tp),
        "pipe": lambda rank: rank % stage,
        "ep": lambda rank: (rank // stage, rank % tp, place(rank) % edp if first else place(rank) // ep),
        "edp": lambda rank: (rank // stage, rank % tp, place(rank) // edp if first else place(rank) % ep),
    }
    check(layout, keys)


@FEWER
@given(tp=SIZE, lanes=SIZE, data=st.data())
def test_deepspeed_folding(tp: int, lanes: int, data: st.DataObject) -> None:
    world = tp * lanes * 2
    ep = data.draw(st.sampled_from([size for size in range(2, world + 1) if world % size == 0]))
    layout = from_flags("deepspeed", f"--autotp-size {tp} --autoep-size {ep}", gpus=world)
    keys: dict[str, Key] = {"ep": lambda rank: rank // ep, "edp": lambda rank: rank % ep}
    if tp > 1:
        check(layout, keys)


@FEWER
@given(tp=SIZE, cp=SIZE, dp=SIZE, pp=SIZE)
def test_nanotron(tp: int, cp: int, dp: int, pp: int) -> None:
    layout = from_flags(
        "nanotron", f"--tp {tp} --context-parallel-size {cp} --dp {dp} --pp {pp}", gpus=tp * cp * dp * pp
    )
    stage = tp * cp * dp
    keys: dict[str, Key] = {
        "tp": lambda rank: rank // tp,
        "cp": lambda rank: (rank // (tp * cp), rank % tp),
        "dp": lambda rank: (rank // stage, rank % (tp * cp)),
        "dp_cp": lambda rank: (rank // stage, rank % tp),
        "pp": lambda rank: rank % stage,
        "mp": lambda rank: rank % stage // tp,
    }
    check(layout, keys)


def test_megatron_optimizer_instances() -> None:
    layout = from_flags(
        "megatron", "--context-parallel-size 2 --num-distributed-optimizer-instances 2", gpus=16
    )
    groups = layout.framework_groups
    assert groups["intra_dp_cp"] == [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]
    assert groups["inter_dp_cp"] == [[rank, rank + 8] for rank in range(8)]
    assert groups["inter_edp"] == [[rank, rank + 8] for rank in range(8)]


def test_sglang_replicas_are_worlds_of_their_own() -> None:
    layout = from_flags("sglang", "--tp 2 --pp-size 2 --dp-size 2", gpus=8)
    assert layout.framework_groups["pp"] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert layout.groups["dp"] == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_older_torchtitan_had_expert_tp() -> None:
    flags = (
        "--parallelism.tensor_parallel_degree 2 --parallelism.expert_parallel_degree 2 "
        "--parallelism.expert_tensor_parallel_degree 2"
    )
    layout = from_flags("torchtitan", flags, gpus=8, version="0.2.0")
    assert layout.framework_groups["ep"] == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_zero_hpz_is_contiguous() -> None:
    layout = from_flags("deepspeed", "--zero-hpz-partition-size 4", gpus=8)
    assert layout.framework_groups["zero_hpz"] == [[0, 1, 2, 3], [4, 5, 6, 7]]

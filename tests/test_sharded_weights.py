"""FSDP, HSDP and ZeRO: what is stored, gathered and refused, and how launches say it."""

from __future__ import annotations

from typing import Any

import pytest

import tracer
from tracer.errors import ConfigError
from tracer.frameworks import from_flags
from tracer.memory.fits import check_fits
from tracer.memory.residency import residency_of
from tracer.memory.shard_units import UnitKind, shard_group, shard_unit
from tracer.mesh.hardware import hardware_preset
from tracer.model.configs.presets import model_preset
from tracer.scenario.scenario import Scenario
from tracer.timing.pass_time import PassTime, pass_time
from tracer.traffic.traffic import comm_volume

Table = dict[str, Any]


def scenario_of(preset: str, mesh: Table) -> Scenario:
    return Scenario.from_dict(
        {"model": {"preset": preset}, "mesh": mesh, "cluster": {"hardware": "h100"}, "token": {"position": 1}}
    )


@pytest.mark.parametrize(
    ("preset", "kind", "stored"), [("llama-3.1-8b", "fsdp", 2.0), ("llama-3.1-70b", "zero3", 17.6)]
)
def test_eight_gpus_store_an_eighth_each(preset: str, kind: str, stored: float) -> None:
    scenario = scenario_of(preset, {"dp": 8, "weight_shard": kind})
    held = check_fits(scenario).fullest
    assert round(held.weight_bytes / 1e9, 1) == stored
    whole = sum(residency_of(scenario, rank).weight_bytes for rank in range(8))
    assert whole == check_fits(scenario_of(preset, {"dp": 8})).fullest.weight_bytes


def test_peak_adds_the_units_in_flight() -> None:
    scenario = scenario_of("llama-3.1-8b", {"dp": 8, "weight_shard": "fsdp"})
    layer = shard_unit(scenario, 0, UnitKind.LAYER, 1).bytes
    head = shard_unit(scenario, 0, UnitKind.HEAD).bytes
    assert check_fits(scenario).fullest.staging_bytes == layer + head
    kept = scenario_of("llama-3.1-8b", {"dp": 8, "weight_shard": "fsdp", "weight_keep": True})
    assert check_fits(kept).fullest.staging_bytes == check_fits(kept).fullest.weight_bytes * 8


def test_a_gather_is_no_comm_op_and_is_tallied_apart() -> None:
    plain = tracer.take_trip(scenario_of("llama-3.1-8b", {"dp": 8})).log
    log = tracer.take_trip(scenario_of("llama-3.1-8b", {"dp": 8, "weight_shard": "fsdp"})).log
    assert (log.comm_ops, log.bytes, log.gpus_touched) == (plain.comm_ops, plain.bytes, plain.gpus_touched)
    embedding, layer = 128_256 * 4096 * 2, (4096 * (2 * 4096 + 2 * 1024) + 3 * 4096 * 14_336 + 2 * 4096) * 2
    assert (log.weight_ops, log.weight_bytes) == (1 + 32, (embedding + 32 * layer) * 7 // 8)


def test_zero_1_and_2_leave_weights_whole() -> None:
    plain = scenario_of("llama-3.1-8b", {"dp": 8})
    for kind in ("zero1", "zero2"):
        scenario = scenario_of("llama-3.1-8b", {"dp": 8, "weight_shard": kind})
        assert tracer.take_trip(scenario).log == tracer.take_trip(plain).log
        assert check_fits(scenario).fullest.weight_bytes == check_fits(plain).fullest.weight_bytes


def test_hsdp_gathers_inside_groups_and_experts_over_edp() -> None:
    mesh = {"dp": 8, "cp": 2, "ep": 4, "weight_shard": "hsdp", "weight_shard_size": 8}
    scenario = scenario_of("mixtral-8x7b", mesh)
    assert shard_group(scenario, 9) == list(range(8, 16))
    assert shard_group(scenario, 9, experts=True) == [9, 13]
    ops = {hop.part for hop in tracer.take_trip(scenario).hops if hop.kind == "weight_gather"}
    assert ops == {"embedding", "attention", "moe"}


def test_traffic_and_time_hold_the_gathers() -> None:
    scenario = scenario_of("llama-3.1-8b", {"dp": 16, "weight_shard": "fsdp"})
    line = next(each for each in comm_volume(scenario).lines if each.part == "weight_gather")
    assert line.bytes == shard_unit(scenario, 0, UnitKind.LAYER, 1).gathered_bytes
    assert line.ib_bytes == pytest.approx(line.bytes * 8 / 15)
    whole = pass_time(scenario, hardware_preset("h100"))
    assert whole.gather_seconds == line.seconds
    assert whole.dense_layer_seconds >= line.seconds


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ({"dp": 8, "weight_shard": "hsdp"}, r"weight_shard_size is not given and must be a whole number"),
        (
            {"dp": 8, "weight_shard": "hsdp", "weight_shard_size": 3},
            r"=3 must divide dp·cp = 8",
        ),
        ({"dp": 8, "weight_shard": "fsdp", "weight_shard_size": 4}, r"is the shard group of .*'hsdp'"),
        ({"dp": 8, "weight_keep": True}, r"weight_keep=True keeps gathered weights"),
        ({"dp": 8, "weight_shard": "zero4"}, r"weight_shard='zero4' must be none, zero1"),
    ],
)
def test_refusals(mesh: Table, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        scenario_of("llama-3.1-8b", mesh)


LLAMA = model_preset("llama-3.1-8b")


@pytest.mark.parametrize(
    ("framework", "flags", "said"),
    [
        ("torchtitan", "", ("fsdp", None, False)),
        ("torchtitan", "--parallelism.data_parallel_replicate_degree 2", ("hsdp", 4, False)),
        ("torchtitan", "--parallelism.context_parallel_degree 2", ("fsdp", None, False)),
        ("torchtitan", "--parallelism.pipeline_parallel_degree 2", ("fsdp", None, True)),
        ("torchtitan", "--parallelism.data_parallel_replicate_degree 8 "
                       "--parallelism.data_parallel_shard_degree 1", ("none", None, False)),
        ("deepspeed", "--zero-stage 3", ("zero3", None, False)),
        ("deepspeed", "--zero-stage 2", ("zero2", None, False)),
        ("accelerate", "--use-fsdp true", ("fsdp", None, False)),
        ("accelerate", "--parallelism-config-dp-shard-size 4 --parallelism-config-dp-replicate-size 2",
         ("hsdp", 4, False)),
        ("megatron", "--use-distributed-optimizer", ("zero1", None, False)),
        ("megatron", "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params",
         ("fsdp", None, False)),
        ("megatron", "--use-megatron-fsdp --data-parallel-sharding-strategy optim", ("zero1", None, False)),
        ("megatron", "", ("none", None, False)),
    ],
)  # fmt: skip
def test_importers(framework: str, flags: str, said: tuple[str, int | None, bool]) -> None:
    scenario = from_flags(framework, flags, gpus=8, model=LLAMA).scenario
    plan = scenario.plan
    assert (plan.weight_shard, plan.weight_shard_size, plan.weight_keep) == said
    assert Scenario.from_toml(scenario.to_toml()).plan == plan


def test_gathers_hide_behind_the_layer_before() -> None:
    """Layers of c seconds with gathers of g: g, then n - 1 times the longer of both, then c."""
    mesh = {"dp": 8, "weight_shard": "fsdp"}
    ahead = pass_of(scenario_of("llama-3.1-8b", mesh))
    waits = pass_of(scenario_of("llama-3.1-8b", mesh | {"weight_prefetch": False}))
    gather, layers = waits.gather_seconds, 32
    alone = waits.dense_layer_seconds - gather
    assert gather == ahead.gather_seconds > 0
    assert waits.seconds == pytest.approx(layers * (alone + gather))
    assert ahead.seconds == pytest.approx(gather + (layers - 1) * max(alone, gather) + alone)
    assert "gathered behind the layer before it" in ahead.assumption
    assert "every layer waits for its weights" in waits.assumption
    assert "gather" not in pass_of(scenario_of("llama-3.1-8b", {"dp": 8})).assumption


def pass_of(scenario: Scenario) -> PassTime:
    return pass_time(scenario, hardware_preset("h100"), tokens=512, rates="peak")


def test_without_prefetch_one_unit_is_gathered_at_a_time() -> None:
    mesh = {"dp": 8, "weight_shard": "fsdp"}
    ahead, alone = (
        check_fits(scenario_of("llama-3.1-8b", mesh | {"weight_prefetch": each})) for each in (True, False)
    )
    assert alone.to_dict() != ahead.to_dict()
    kept = scenario_of("llama-3.1-8b", mesh | {"weight_prefetch": False})
    assert Scenario.from_toml(kept.to_toml()).plan.weight_prefetch is False
    with pytest.raises(ConfigError, match=r"mesh\.weight_prefetch='no' must be true or false"):
        scenario_of("llama-3.1-8b", mesh | {"weight_prefetch": "no"})


def test_words_say_gathered_and_not_pulled() -> None:
    text = str(tracer.take_trip(scenario_of("llama-3.1-8b", {"dp": 8, "weight_shard": "fsdp"})))
    assert "of weights gathered" in text
    assert "weights are gathered when they are needed" in text
    assert "pulled" not in text

"""Ulysses and hierarchical context parallelism: bytes, refusals, balance, K/V by heads, importers."""

from __future__ import annotations

from typing import Any

import pytest

import tracer
from tracer.errors import ConfigError
from tracer.frameworks import from_flags
from tracer.memory.causal_work import compare_causal_work
from tracer.memory.fits import check_fits
from tracer.memory.kv_owners import kv_owners
from tracer.mesh.hardware import hardware_preset
from tracer.model.configs.presets import model_preset
from tracer.scenario.scenario import Scenario
from tracer.serving.phases import phase_table
from tracer.timing.pass_time import pass_time

Table = dict[str, Any]
DENSE: Table = {
    "layers": 4, "hidden": 512, "heads": 16, "kv_heads": 8, "head_dim": 32, "vocab": 1000, "dense_hidden": 512
}  # fmt: skip


def scenario_of(mesh: Table, **model: Any) -> Scenario:
    return Scenario.from_dict({"model": DENSE | model, "mesh": mesh, "cluster": {"hardware": "h100"}})


def hop_bytes(scenario: Scenario) -> dict[str, int]:
    return {str(hop.kind): hop.bytes for hop in tracer.take_trip(scenario).hops if hop.layer == 1}


def test_two_all_to_alls_of_all_but_one_share_of_the_heads() -> None:
    scenario = scenario_of({"cp": 4, "kv_exchange": "ulysses"})
    moved = hop_bytes(scenario)
    assert moved == {"heads_scatter": 3 * (16 + 2 * 8) * 32 // 4 * 2, "heads_gather": 3 * 16 * 32 // 4 * 2}
    assert tracer.take_trip(scenario).log.comm_ops == 2 * 4


def test_hierarchical_shares_heads_inside_and_rings_between() -> None:
    moved = hop_bytes(scenario_of({"cp": 8, "kv_exchange": "hierarchical", "cp_inner": 2}))
    assert list(moved) == ["heads_scatter", "kv_exchange", "heads_gather"]
    assert moved["heads_scatter"] == (16 + 2 * 8) * 32 // 2 * 2
    assert moved["kv_exchange"] == 3 * 2 * 8 * 32 * 2
    whole = hop_bytes(scenario_of({"cp": 4, "kv_exchange": "hierarchical", "cp_inner": 4}))
    assert whole == hop_bytes(scenario_of({"cp": 4, "kv_exchange": "ulysses"}))


def test_few_kv_heads_are_copied() -> None:
    moved = hop_bytes(scenario_of({"cp": 8, "kv_exchange": "ulysses"}, kv_heads=2))
    assert moved["heads_scatter"] == 7 * (2 + 2) * 32 * 2


def test_kv_lives_by_heads_of_every_position() -> None:
    scenario = scenario_of({"tp": 2, "cp": 2, "kv_exchange": "ulysses"})
    owners = [kv_owners(scenario, position) for position in (0, 40)]
    assert [owner.ranks for owner in owners] == [(0, 1, 2, 3), (0, 1, 2, 3)]
    assert {held.rank: held.heads for held in owners[0].holdings} == {
        0: (0, 1), 2: (2, 3), 1: (4, 5), 3: (6, 7)
    }  # fmt: skip
    ring = check_fits(scenario_of({"tp": 2, "cp": 2}))
    heads = check_fits(scenario)
    assert heads.fullest.kv_bytes_per_token * 2 == ring.fullest.kv_bytes_per_token
    assert abs(heads.tokens_a_replica - ring.tokens_a_replica) <= 1


@pytest.mark.parametrize(
    ("mesh", "imbalance"),
    [
        ({"cp": 4, "landing": "contiguous"}, 904 / 520),
        ({"cp": 4, "landing": "contiguous", "kv_exchange": "ulysses"}, 1.0),
        ({"cp": 4, "landing": "contiguous", "kv_exchange": "hierarchical", "cp_inner": 2}, 1552 / 1040),
    ],
)
def test_ranks_that_share_heads_work_alike(mesh: Table, imbalance: float) -> None:
    work = compare_causal_work(scenario_of(mesh))["contiguous"]
    assert work.imbalance == pytest.approx(imbalance)
    assert work.pairs == 64 * 65 // 2


@pytest.mark.parametrize(
    ("mesh", "model", "message"),
    [
        ({"cp": 32, "kv_exchange": "ulysses"}, {}, r"kv_exchange='ulysses' cuts the 16 query heads .* 32 CP"),
        ({"cp": 4, "kv_exchange": "ulysses"}, {"heads": 12, "kv_heads": 6}, r"cuts 6 KV heads of a TP rank"),
        (
            {"cp": 4, "kv_exchange": "hierarchical"},
            {},
            r"mesh\.cp_inner is not given and must be a whole number",
        ),
        ({"cp": 4, "kv_exchange": "hierarchical", "cp_inner": 3}, {}, r"cp_inner=3 must divide cp = 4"),
        ({"cp": 4, "cp_inner": 2}, {}, r"cp_inner=2 is the inner group of kv_exchange = 'hierarchical'"),
        (
            {"tp": 16, "cp": 2, "dcp": 2, "kv_exchange": "ulysses"},
            {"heads": 32},
            r"mesh\.dcp=2 shards tokens",
        ),
    ],
)
def test_refusals(mesh: Table, model: Table, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        scenario_of(mesh, **model)


def test_a_decode_step_shares_heads_too_and_not_on_two_levels() -> None:
    decode = scenario_of({"cp": 4, "kv_exchange": "ulysses"}).with_phase(tracer.scenario.token.Phase.DECODE)
    assert list(hop_bytes(decode)) == ["heads_scatter", "heads_gather"]
    two_levels = scenario_of({"cp": 4, "kv_exchange": "hierarchical", "cp_inner": 2})
    with pytest.raises(
        ConfigError, match=r"kv_exchange='hierarchical' is Transformer Engine's training attention"
    ):
        two_levels.with_phase(tracer.scenario.token.Phase.DECODE)


def test_time_counts_both_all_to_alls() -> None:
    hardware = hardware_preset("h100")
    scenario = scenario_of({"cp": 4, "kv_exchange": "ulysses"})
    whole = pass_time(scenario, hardware)
    moved = whole.attention_seconds - whole.attention.seconds
    each = 64 / 4 * sum(hop_bytes(scenario).values())
    assert moved == pytest.approx(each / scenario.cluster.nvlink.bytes_per_s)
    assert "share heads" in str(phase_table(scenario))


LLAMA = model_preset("llama-3.1-8b")


@pytest.mark.parametrize(
    ("framework", "flags", "exchange", "inner"),
    [
        ("megatron", "--context-parallel-size 4 --cp-comm-type a2a", "ulysses", None),
        (
            "megatron",
            "--context-parallel-size 8 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 4",
            "hierarchical",
            2,
        ),
        ("megatron", "--context-parallel-size 4 --cp-comm-type p2p", "ring", None),
        ("deepspeed", "--sequence-parallel-size 4", "ulysses", None),
        ("accelerate", "--parallelism-config-sp-size 4", "ulysses", None),
        (
            "accelerate",
            "--parallelism-config-cp-size 4 --parallelism-config-dp-shard-size 2",
            "all_gather",
            None,
        ),
        ("tensorrt_llm", "--cp_size 4 --tp_size 2", "ulysses", None),
    ],
)
def test_importers(framework: str, flags: str, exchange: str, inner: int | None) -> None:
    layout = from_flags(framework, flags, gpus=8, model=LLAMA)
    plan = layout.scenario.plan
    assert (plan.kv_exchange, plan.cp_inner) == (exchange, inner)
    assert "not_expressible" not in {note.code for note in layout.warnings}
    assert Scenario.from_toml(layout.scenario.to_toml()).plan == plan


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--context-parallel-size 16 --cp-comm-type a2a", r"8 query groups of a TP rank must be divisible"),
        (
            "--context-parallel-size 4 --cp-comm-type a2a+p2p",
            r"needs two hierarchical_context_parallel_sizes",
        ),
        ("--context-parallel-size 4 --cp-comm-type ulysses", r"'ulysses' is not one of p2p"),
    ],
)
def test_megatron_refuses(flags: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_flags("megatron", flags, gpus=16, model=LLAMA)


@pytest.mark.parametrize(
    ("preset", "same"),
    [
        ("gpt-oss-120b", True),
        ("qwen3.5-27b", True),
        ("deepseek-v4-flash", False),
    ],
)
def test_layers_of_several_kinds_share_heads_where_they_have_the_same(preset: str, same: bool) -> None:
    """Windows, and layers without K/V, change nothing of a head; compressed entries do."""
    model = model_preset(preset)
    tables: Table = {
        "model": model.to_dict(),
        "mesh": {"cp": 2, "kv_exchange": "ulysses"},
        "token": {"prompt": 16},
    }
    if not same:
        with pytest.raises(
            ConfigError, match="cuts heads, and compressed attention and indexers work for all heads"
        ):
            Scenario.from_dict(tables)
        return
    scenario = Scenario.from_dict(tables)
    sizes = {hop.bytes for hop in tracer.take_trip(scenario).hops if hop.kind == "heads_gather"}
    assert sizes == {model.need("heads", "") // 2 * model.need("v_head_dim", "") * 2}

"""Every way of running the mesh, one at a time, and small meshes that hypothesis draws."""

from __future__ import annotations

from typing import Any

import pytest
from draws import draws
from hypothesis import HealthCheck, given, settings
from replay_cases import GQA, MIXTRAL, MOE, deployment, shared_model
from strategies import scenarios

import tracer
from tracer.proof.replay import replay

Table = dict[str, Any]
MESH: Table = {"tp": 2, "cp": 2, "dp": 2, "ep": 8}
PADDED: Table = {"prompt": 13}


def assert_proved(scenario: tracer.Scenario, **options: Any) -> None:
    report = replay(scenario, **options)
    assert report.ok, report
    assert report.max_abs_error <= 1e-9


@pytest.mark.parametrize("sp", ["megatron", "off", "before_dispatch"])
@pytest.mark.parametrize("contract", ["ep", "tp", "ag_rs", "dwdp"])
def test_sp_and_contract(sp: str, contract: str) -> None:
    mesh = {**MESH, "sp": sp, "contract": contract}
    if contract == "tp":
        mesh["ep"] = 1
    assert_proved(deployment(shared_model(), mesh, token=PADDED))


@pytest.mark.parametrize("sp", ["megatron", "off", "before_dispatch"])
def test_low_latency(sp: str) -> None:
    mesh = {**MESH, "sp": sp, "dispatch": "low_latency", "ep": 4, "etp": 2}
    assert_proved(deployment(shared_model(), mesh, token=PADDED, dtype={"dispatch": "fp8"}))


@pytest.mark.parametrize(
    "option",
    [
        {"embedding": "vocab_parallel"},
        {"embedding": "vocab_parallel", "sp": "off"},
        {"shared_tp": True},
        {"shared_tp": True, "sp": "off"},
        {"shared_tp": "own", "shared_overlap": True},
        {"shared_tp": "own", "shared_overlap": True, "sp": "off", "contract": "ag_rs"},
        {"shared_tp": "merged", "contract": "tp", "ep": 1},
        {"shared_tp": "merged", "contract": "tp", "ep": 1, "sp": "off"},
        {"shared_tp": "merged", "contract": "ag_rs"},
        {"shared_tp": "merged", "contract": "ag_rs", "sp": "off", "ep": 2, "etp": 2},
        {"shared_tp": "merged", "contract": "ag_rs", "sp": "before_dispatch"},
        {"shared_routed": True, "ep": 1},
        {"shared_routed": True, "ep": 1, "contract": "tp"},
        {"dense_tp": 1},
        {"dense_tp": 1, "sp": "off"},
        {"tp_algo": "ring", "tp": 4, "dp": 1},
        {"tp_algo": "ring", "tp": 4, "dp": 1, "sp": "off"},
        {"landing": "contiguous"},
        {"weight_shard": "fsdp"},
        {"weight_shard": "zero3", "ep": 2, "sp": "off", "embedding": "vocab_parallel"},
        {"weight_shard": "hsdp", "weight_shard_size": 2, "ep": 1, "contract": "tp"},
        {"weight_shard": "fsdp", "pp": 3, "dp": 2, "cp": 1, "ep": 2, "etp": 2},
        {"kv_exchange": "ulysses"},
        {"kv_exchange": "ulysses", "sp": "off", "landing": "contiguous"},
        {"kv_exchange": "hierarchical", "cp_inner": 2, "cp": 4, "dp": 1, "ep": 4},
        {"kv_exchange": "hierarchical", "cp_inner": 1},
        {"dispatch": "low_latency", "routing_metadata": True},
        {"dispatch": "low_latency", "routing_metadata": True, "sp": "off", "ep": 2, "etp": 2},
        {"dispatch": "low_latency", "routing_metadata": True, "sp": "before_dispatch"},
        {"dispatch": "low_latency", "routing_metadata": True, "shared_routed": True, "ep": 1},
        {"dispatch": "low_latency", "routing_metadata": True, "shared_tp": "own", "shared_overlap": True},
        {"order": "cp-dp-tp-pp"},
        {"expert_order": "ep-edp-etp", "ep": 2, "etp": 2},
        {"pp": 3, "dp": 1, "ep": 4},
        {"pp": 2, "dp": 1, "ep": 4, "stage_layers": [1, 2]},
        {"pp": 2, "dp": 1, "ep": 4, "chunks": 2, "chunk_layers": [1, 1, 0, 1]},
        {"pp": 2, "dp": 1, "ep": 4, "chunks": 2, "chunk_order": "v_shape", "chunk_layers": [1, 0, 1, 1]},
        {"pp": 2, "dp": 1, "ep": 4, "chunks": 2, "chunk_layers": [0, 2, 1, 0], "sp": "off"},
    ],
    ids=str,
)
def test_one_option(option: Table) -> None:
    assert_proved(deployment(shared_model(), {**MESH, **option}, token=PADDED))


@pytest.mark.parametrize("cp", [3, 4])
@pytest.mark.parametrize("kind", [{"kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16}, {}])
def test_shrunken_heads_still_divide_over_cp(cp: int, kind: Table) -> None:
    """Twelve heads over cp 3 or 4: the small model has as many heads a CP rank needs."""
    model = {
        "layers": 2,
        "hidden": 48,
        "heads": 12,
        "kv_heads": 12,
        "head_dim": 16,
        "v_head_dim": 16,
        "vocab": 32,
    }
    model |= {"dense_hidden": 64} | kind
    assert_proved(deployment(model, {"cp": cp, "kv_exchange": "ulysses"}, token={"prompt": 24}), tiny=True)


@pytest.mark.parametrize("sp", ["megatron", "off", "before_dispatch"])
def test_gathers_in_a_dtype_of_their_own(sp: str) -> None:
    assert_proved(deployment(shared_model(), {**MESH, "sp": sp}, token=PADDED, dtype={"tp_gather": "fp8"}))


@pytest.mark.parametrize(
    "router",
    [
        {"router": "softmax_topk", "renormalise": False, "routed_scale": 16.0},
        {"router": "softmax_topk", "expert_groups": 4, "top_groups": 2, "renormalise": False},
        {"router": "sigmoid_bias_topk", "expert_groups": 4, "top_groups": 2, "routed_scale": 2.5},
        {"router": "topk_softmax"},
        {"router": "topk_sigmoid", "top_k": 1},
    ],
    ids=str,
)
def test_router(router: Table) -> None:
    assert_proved(deployment(shared_model(**router), {**MESH, "etp": 1}))


@pytest.mark.parametrize(
    "change",
    [
        {"tie_embeddings": True},
        {"shared_gate": True},
        {"vocab": 97},
        {"dense_layers": [2]},
        {"v_head_dim": 6},
    ],
    ids=str,
)
def test_model(change: Table) -> None:
    assert_proved(deployment(shared_model(**change), MESH))


def test_replicated_experts_and_a_table_of_one_layer() -> None:
    slots = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 0, 7, 3, 3, 2, 6]
    placement = {"kind": "table", "slots": slots, "slots_by_layer": {"2": slots[::-1]}}
    for contract in ("ep", "ag_rs", "dwdp"):
        mesh = {**MESH, "contract": contract}
        assert_proved(deployment(shared_model(), mesh, placement=placement, token=PADDED))


def test_islands_that_lack_a_relay() -> None:
    """Copies go straight where no rank has the home's index, or where TP spans islands."""
    for cluster in ({"gpus_per_node": 3}, {"gpus_per_node": 1}, {"gpus_per_node": 2, "nodes_per_island": 3}):
        for sp in ("megatron", "off"):
            mesh = {**MESH, "cp": 1, "dp": 3, "ep": 6, "sp": sp}
            assert_proved(deployment({**MOE, "experts": 12}, mesh, cluster=cluster))


def test_without_experts_and_with_logprobs() -> None:
    model = {**GQA, "dense_hidden": 32}
    assert_proved(deployment(model, {"tp": 4, "cp": 2}, token={"prompt": 21, "prompt_logprobs": True}))


def test_one_gpu() -> None:
    assert_proved(deployment(MOE, {}), tiny=False)


def test_widths_of_the_scenario_itself() -> None:
    """Without ``tiny`` the scenario's own sizes are multiplied."""
    report = replay(deployment(MOE, MESH, token={"prompt": 16}), tiny=False)
    assert report.ok
    assert report.scenario.model.hidden == 64


def test_experts_that_get_no_token() -> None:
    """64 experts and 4 tokens of 1 pick: most experts run on nothing."""
    assert_proved(deployment({**MOE, "experts": 64, "top_k": 1}, {"tp": 2, "ep": 2}, token={"prompt": 4}))


def test_low_latency_sends_a_copy_for_each_pick() -> None:
    """The form by picks, with those that stay at home counted: exact."""
    mesh = {"tp": 2, "dp": 4, "ep": 4, "etp": 2, "dispatch": "low_latency"}
    forms = [form for form in replay(deployment(MOE, mesh)).closed_forms if form.axis == "ep"]
    assert len(forms) == 3
    for form in forms:
        assert form.kept > 0
        assert sum(form.sent) + form.kept == form.expected * len(form.sent)


@pytest.mark.parametrize("contract", ["ep", "dwdp"])
def test_pulled_weights_are_tallied_apart(contract: str) -> None:
    report = replay(deployment(MOE, {"tp": 2, "dp": 4, "ep": 8, "contract": contract}))
    model = report.scenario.model
    slices = 3 * model.need("hidden", "test") * model.need("expert_hidden", "test")
    pulled = model.layers * 8 * 7 * slices * 2 if contract == "dwdp" else 0
    assert report.pulled_bytes == pulled, "7 of 8 experts, for each of 8 ranks and each layer, in BF16"
    forms = [form for form in report.closed_forms if form.part == "weight_pull"]
    assert len(forms) == (model.layers if contract == "dwdp" else 0)
    assert report.forms_hold


def test_another_seed_is_another_model() -> None:
    scenario = deployment(MOE, MESH)
    one, two = replay(scenario, seed=1), replay(scenario, seed=2)
    assert one.ok
    assert two.ok
    assert one.bytes_moved != two.bytes_moved, "other picks, other copies"


def small(table: Table) -> bool:
    mesh = table.get("mesh", {})
    return mesh.get("tp", 1) * mesh.get("cp", 1) * mesh.get("dp", 1) * mesh.get("pp", 1) <= 16


@settings(
    max_examples=draws(25),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(scenarios().filter(small))
def test_drawn_meshes(table: Table) -> None:
    assert_proved(tracer.Scenario.from_dict(table))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"phase": "decode"}, "phase='decode' cannot be replayed; try phase = 'prefill'"),
        ({}, r"has 46,\d\d\d,\d\d\d,\d\d\d weights, .* replay it tiny"),
    ],
)
def test_refusals(change: Table, message: str) -> None:
    with pytest.raises(tracer.ConfigError, match=message):
        replay(deployment(MIXTRAL, {"tp": 8}, **change), tiny=False)


def test_refuses_a_batch_that_takes_too_long() -> None:
    scenario = deployment(MOE, {"cp": 2}, token={"prompt": 10**6})
    with pytest.raises(tracer.ConfigError, match=r"1,000,000 rows on 2 GPUs in 3 layers.*--tiny"):
        replay(scenario, tiny=False)


@pytest.mark.parametrize("contract", ["ep", "ag_rs", "dwdp"])
def test_shared_experts_that_are_routed_too(contract: str) -> None:
    """They take slots of their own, and every token picks them on top of its router's choice."""
    slots = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 9]
    model = shared_model(shared_experts=2, shared_gate=True)
    mesh = {"tp": 2, "dp": 2, "ep": 4, "contract": contract, "shared_routed": True}
    for dispatch in ("high_throughput", "low_latency"):
        told = deployment(model, {**mesh, "dispatch": dispatch}, placement={"slots": slots}, token=PADDED)
        assert_proved(told)

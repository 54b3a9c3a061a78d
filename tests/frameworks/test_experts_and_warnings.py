"""Which rank holds which expert, and the warnings that name what commonly goes wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from frameworks.case_flags import read

from app.commands.from_ import from_command
from tracer.batch.census.take import take_census
from tracer.batch.picks.draws import DrawnPicks
from tracer.errors import ConfigError
from tracer.frameworks import from_flags, from_line
from tracer.frameworks.layout import Layout
from tracer.memory.fits import check_fits
from tracer.memory.residency import residency_of
from tracer.model.configs.presets import model_preset
from tracer.model.spec import ModelSpec
from tracer.scenario.files import load_scenario
from tracer.scenario.scenario import Scenario
from tracer.traffic.moe import dispatched_rows
from tracer.trip.trip import take_trip


def moe(experts: int, **more: Any) -> ModelSpec:
    return ModelSpec(
        layers=8, hidden=512, heads=16, kv_heads=16, experts=experts, top_k=1, expert_hidden=64, **more
    )


def held(layout: Layout) -> list[list[int]]:
    """Experts of each rank."""
    found: list[list[int]] = [[] for _ in range(layout.world_size)]
    for expert, ranks in layout.expert_ranks.items():
        for rank in ranks:
            found[rank].append(expert)
    return found


@pytest.mark.parametrize("case", read("expert_placement"), ids=lambda case: case["framework"])
def test_given_placements(case: dict[str, Any]) -> None:
    """Every placement the frameworks give, one EP rank a GPU."""
    name, experts = case["framework"].split()[0], case.get("num_experts", 256)
    if name == "vLLM":
        flags = f"-dp {case['ep_size']} --enable-expert-parallel"
        flags += f" --expert-placement-strategy {case['placement']} --all2all-backend deepep_low_latency"
        layout = from_flags("vllm", flags, model=moe(experts, expert_groups=2, top_groups=1))
    elif name == "Megatron-LM":
        layout = from_flags(
            "megatron", f"--expert-model-parallel-size {case['ep_size']} --num-experts {experts}", gpus=4
        )
    elif name == "SGLang":
        size = case["dwdp_size"]
        layout = from_flags("sglang", f"--tp {size} --dwdp-size {size}", model=moe(experts))
    else:
        words = ["--dwdp_config", json.dumps(case["config"])]
        layout = from_flags("trtllm", words, gpus=4, model=moe(experts))
    expected = case.get("experts_by_ep_rank") or [
        list(range(start, stop)) for start, stop in case["local_range_by_rank"]
    ]
    assert held(layout) == expected


def test_experts_are_on_every_rank_of_their_ep_place() -> None:
    """TP2 ETP2 EP2 EDP2 over two stages: a slice on both ETP ranks, in both stages, in both EDP copies."""
    flags = (
        "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --expert-model-parallel-size 2 "
        "--num-experts 4"
    )
    layout = from_flags("megatron", flags, gpus=16)
    assert layout.expert_ranks[0] == [0, 1, 4, 5, 8, 9, 12, 13]
    assert layout.expert_ranks[3] == [2, 3, 6, 7, 10, 11, 14, 15]


def test_redundant_experts_start_again_from_the_first() -> None:
    flags = "-dp 4 --enable-expert-parallel --enable-eplb --eplb-config '{\"num_redundant_experts\": 4}'"
    layout = from_flags("vllm", flags, model=moe(8))
    assert held(layout) == [[0, 1, 2], [3, 4, 5], [0, 6, 7], [1, 2, 3]]
    sglang = from_flags(
        "sglang",
        "--tp 4 --ep-size 4 --ep-num-redundant-experts 4 --attn-dp-size 4",
        model=moe(8),
    )
    assert held(sglang) == held(layout)


def test_dwdp_ranges_may_overlap() -> None:
    config = {"dwdp_size": 2, "num_experts_per_worker": 5, "num_prefetch_experts": 3}
    layout = from_flags("trtllm", ["--dwdp_config", json.dumps(config)], gpus=2, model=moe(8))
    assert held(layout) == [[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]]
    assert layout.scenario.plan.contract == "dwdp"


def codes(name: str, flags: str, **options: Any) -> set[str]:
    return {note.code for note in from_flags(name, flags, **options).warnings}


@pytest.mark.parametrize(
    ("name", "flags", "gpus", "code"),
    [
        ("megatron", "--tensor-model-parallel-size 16", 16, "tp_across_nodes"),
        ("vllm", "-tp 16 --nnodes 2", 16, "tp_across_nodes"),
        ("vllm", "-tp 16", 16, "nnodes_missing"),
        ("vllm", "-tp 2 -pp 2 -dp 4 --enable-expert-parallel", 16, "ep_not_contiguous"),
        ("vllm", "-tp 2 -dp 4 --enable-expert-parallel", 8, "ep_all_or_nothing"),
        ("vllm", "-tp 2 --all2all-backend pplx", 2, "backend_removed"),
        ("vllm", "-tp 4", 8, "external_dp"),
        ("vllm", "-tp 3", 8, "idle_gpus"),
        ("vllm", "-tp 4 -ep", 4, "ep_all_reduce"),
        (
            "megatron",
            "--tensor-model-parallel-size 2 --expert-model-parallel-size 2",
            8,
            "etp_defaults_to_tp",
        ),
        ("megatron", "--tensor-model-parallel-size 2 --expert-model-parallel-size 2", 8, "ep_not_contiguous"),
        (
            "megatron",
            "--tensor-model-parallel-size 2 --expert-model-parallel-size 2",
            8,
            "sp_needed_for_training",
        ),
        ("megatron", "--sequence-parallel", 8, "sp_disabled"),
        ("megatron", "--expert-model-parallel-size 8", 8, "ep_is_no_world_factor"),
        ("megatron", "--expert-model-parallel-size 16", 16, "ep_across_nodes"),
        ("megatron", "--order tp-pp-cp-ep-dp", 8, "order_is_a_keyword"),
        ("sglang", "--tp 8 --dp 8 --enable-dp-attention", 8, "dp_attention_deprecated"),
        ("sglang", "--tp 8 --ep 2 --moe-a2a-backend deepep", 8, "ep_reset_to_tp"),
        ("sglang", "--tp 8 --ep 4", 8, "ep_not_contiguous"),
        ("sglang", "--tp 8 --dwdp-size 8", 8, "dwdp_forces_sizes"),
        ("sglang", "--tp 8 --attn-cp-size 2", 8, "moe_dp_is_attn_cp"),
        ("sglang", "--tp 8 --enable-ep-moe", 8, "removed_flag"),
        ("sglang", "--tp 4", 8, "idle_gpus"),
        ("trtllm", "--tp_size 4 --cp_size 2", 8, "tp_cp_order"),
        ("trtllm", "--tp_size 8 --ep_size 4", 8, "moe_ep_is_fastest"),
        ("trtllm", "--tp_size 8 --enable_attention_dp", 8, "attention_dp_is_all_of_tp"),
        ("trtllm", "--tp_size 8 --cluster_size 2", 8, "deprecated_flag"),
        ("torchtitan", "", 8, "dp_shard_is_the_rest"),
        (
            "torchtitan",
            "--parallelism.data_parallel_replicate_degree 2 --parallelism.expert_parallel_degree 2",
            8,
            "ep_inside_replica",
        ),
        ("deepspeed", "--num-mp 2 --ep_size 2", 8, "lanes_hold_whole_experts"),
        ("deepspeed", "--num-mp 2 --ep_size 2 --enable-expert-tensor-parallelism", 8, "two_moe_rules"),
        ("deepspeed", "--deepspeed_config ds.json", 8, "config_file_not_read"),
        ("nanotron", "--tp 8 --foo", 8, "unknown_flags"),
    ],
)
def test_warnings(name: str, flags: str, gpus: int, code: str) -> None:
    layout = from_flags(name, flags, gpus=gpus)
    (note,) = [note for note in layout.warnings if note.code == code]
    assert note.message and note.fix


def test_a_plain_launch_warns_of_nothing() -> None:
    assert codes("megatron", "--tensor-model-parallel-size 8", gpus=16) == set()
    assert codes("vllm", "-tp 8", gpus=8) == set()
    assert codes("sglang", "--tp 8", gpus=8) == set()


@pytest.mark.parametrize(
    ("more", "model", "why"),
    [
        ("", moe(8), "no more than one expert group"),
        ("--enable-eplb --all2all-backend nixl_ep", moe(8, expert_groups=2, top_groups=1), "EPLB"),
        (
            "--all2all-backend deepep_high_throughput",
            moe(8, expert_groups=2, top_groups=1),
            "deepep_high_thr",
        ),
    ],
)
def test_round_robin_falls_back(more: str, model: ModelSpec, why: str) -> None:
    flags = f"-dp 4 --enable-expert-parallel --expert-placement-strategy round_robin {more}"
    layout = from_flags("vllm", flags, model=model)
    (note,) = [note for note in layout.warnings if note.code == "round_robin_fallback"]
    assert why in note.message
    assert layout.expert_ranks[1] == [0]


def test_uneven_experts_sit_on_the_first_ranks() -> None:
    layout = from_flags("vllm", "-dp 4 --enable-expert-parallel", model=moe(10))
    (note,) = [note for note in layout.warnings if note.code == "uneven_experts"]
    assert "the first 2 ranks hold 3, the others 2" in note.message
    assert [len(experts) for experts in held(layout)] == [3, 3, 2, 2]


def test_old_sglang_commands_are_translated() -> None:
    """The same --dp-size means 1x or 8x the GPUs."""
    old = from_flags("sglang", "--tp-size 8 --dp-size 8 --enable-dp-attention")
    new = from_flags("sglang", "--tp-size 8 --attn-dp-size 8")
    literal = from_flags("sglang", "--tp-size 8 --dp-size 8")
    assert (old.world_size, new.world_size, literal.world_size) == (8, 8, 64)
    assert old.framework_groups == new.framework_groups


@pytest.mark.parametrize(
    ("version", "cp"),
    [
        *((version, [0, 1]) for version in (None, "1.2.0", "v1.3", "1.2.0rc8", "new")),
        *((version, [0, 4]) for version in ("1.2.0rc6", "1.1.0", "0.21.0", "old")),
    ],
)
def test_trtllm_before_and_after_the_swap(version: str | None, cp: list[int]) -> None:
    layout = from_flags("trtllm", "--tp_size 4 --cp_size 2", gpus=8, version=version)
    assert layout.framework_groups["cp"][0] == cp


def test_a_version_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r"is not a version of TensorRT-LLM; try 1\.1\.0"):
        from_flags("trtllm", "--tp_size 4", gpus=4, version="latest")


def test_layers_follow_the_framework() -> None:
    model = ModelSpec(layers=10, hidden=64, heads=4)
    stages = {
        "vllm": from_flags("vllm", "-pp 4", model=model).scenario.stage_layers,
        "sglang": from_flags("sglang", "--pp-size 4", model=model).scenario.stage_layers,
        "by hand": from_flags(
            "vllm", "VLLM_PP_LAYER_PARTITION=1,2,3,4 vllm serve m -pp 4", model=model
        ).scenario.stage_layers,
        "ends": from_flags(
            "megatron",
            "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1 "
            "--decoder-last-pipeline-num-layers 1",
            gpus=4,
            model=model,
        ).scenario.stage_layers,
    }
    assert stages == {
        "vllm": (2, 3, 3, 2),
        "sglang": (2, 2, 3, 3),  # the last stages are longer: get_pp_indices of 0.5.23
        "by hand": (1, 2, 3, 4),
        "ends": (1, 4, 4, 1),
    }
    with pytest.raises(ConfigError, match="should be divisible by the pipeline"):
        from_flags("megatron", "--pipeline-model-parallel-size 4", gpus=4, model=model)


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("megatron", "--tensor-model-parallel-size 3"),
        ("vllm", "-tp 3"),
        ("sglang", "--tp 3"),
        ("trtllm", "--tp_size 3"),
        ("torchtitan", "--parallelism.tensor_parallel_degree 3"),
        ("deepspeed", "--num-mp 3"),
        ("nanotron", "--tp 3"),
    ],
)
def test_heads_must_divide(name: str, flags: str) -> None:
    model = ModelSpec(layers=4, hidden=64, heads=4)
    with pytest.raises(ConfigError, match=r"eads? .*4\).* 3|\(4\).*\(3\)"):
        from_flags(name, flags, gpus=3, model=model)


@pytest.mark.parametrize(
    ("name", "flags", "dcp"),
    [
        ("vllm", "-tp 8 -dcp 8 --dcp-kv-cache-interleave-size 16", (8, 16)),
        ("vllm", "-tp 8 -dcp 4", (4, 1)),
        ("vllm", "-tp 4 -pcp 2 -dcp 8", (4, 1)),  # the other 2 are the PCP ranks, over which K/V is shared
        ("vllm", "-tp 4 -pcp 2 -dcp 2", (1, 1)),
        ("sglang", "--tp 8 --dcp-size 8", (8, 1)),
        ("sglang", "--tp 8 --attn-dp-size 2 --dcp-size 4", (4, 1)),
    ],
)
def test_decode_context_parallelism_reaches_the_saved_scenario(
    name: str, flags: str, dcp: tuple[int, int]
) -> None:
    layout = from_flags(name, flags, model=model_preset("deepseek-v3"))
    saved = Scenario.from_toml(layout.scenario.to_toml())
    assert (saved.plan.dcp, saved.plan.dcp_interleave) == dcp
    assert not [note for note in layout.warnings if note.code in ("pcp_copies_kv", "dcp_not_expressible")]


def test_dcp_shares_the_room_for_kv() -> None:
    """DeepSeek-R1 on eight H200, nine tenths usable, shared experts counted whole: 8 times as many tokens."""
    tokens = {}
    for flags in ("-tp 8", "-tp 8 -dcp 8"):
        table = from_flags("vllm", flags, model=model_preset("deepseek-v3")).scenario.to_dict()
        table["cluster"]["hardware"] = "h200"
        table["mesh"]["shared_tp"] = False
        tokens[flags] = check_fits(Scenario.from_dict(table), 0.9).tokens_a_replica
    assert tokens == {"-tp 8": 695_613, "-tp 8 -dcp 8": 5_564_904}


@pytest.mark.parametrize(
    ("name", "flags", "code"),
    [
        ("vllm", "-tp 4 -pcp 2", "pcp_copies_kv"),
        ("sglang", "--tp 8 --attn-dp-size 4 --dcp-size 4", "dcp_not_expressible"),
    ],
)
def test_kv_that_the_scenario_shares_otherwise_is_said(name: str, flags: str, code: str) -> None:
    layout = from_flags(name, flags, model=model_preset("deepseek-v3"))
    assert code in [note.code for note in layout.warnings]
    assert layout.scenario.plan.dcp == 1


@pytest.mark.parametrize("backend", ["deepep", "mooncake", "mori"])
def test_sglang_scatters_tokens_over_attention_tp_before_dispatch(backend: str) -> None:
    """2,048 tokens at TP16: 128 rows leave each rank, not 2,048."""
    model = model_preset("deepseek-v3")
    scenario = from_flags("sglang", f"--tp 16 --moe-a2a-backend {backend}", model=model).scenario
    assert isinstance(scenario, Scenario)
    assert scenario.plan.sp == "before_dispatch"
    assert dispatched_rows(scenario, 2048) == 128
    alone = from_flags("sglang", f"--tp 16 --attn-dp-size 16 --moe-a2a-backend {backend}", model=model)
    assert alone.scenario.plan.sp == "off"


def test_sglang_census_counts_each_row_once() -> None:
    """2,048 tokens, 58 layers, 8 picks: 0.95 M, and not 16 times as many."""
    pytest.importorskip("numba")
    scenario = from_flags(
        "sglang", "--tp 16 --moe-a2a-backend deepep", model=model_preset("deepseek-v3")
    ).scenario
    assert isinstance(scenario, Scenario)
    assert take_census(scenario, DrawnPicks.of_model(scenario.model, 2048)).picks == 2048 * 58 * 8 == 950_272


def test_figures_that_hardware_lacks_are_stated_at_the_command_line(tmp_path: Path) -> None:
    line = ["--hardware", "h20", "--model", "deepseek-v2-lite", "--save", str(tmp_path / "s.toml")]
    launch = ["--", "vllm", "serve", "deepseek-ai/DeepSeek-V2-Lite", "-tp", "8", "-dp", "4"]
    refused = CliRunner().invoke(from_command, [*line, *launch])
    assert "--set cluster.ib_bytes_per_s=" in str(refused.exception)
    stated = ["--set", "cluster.ib_bytes_per_s=50e9", "--set", "cluster.hbm_bytes=141e9"]
    done = CliRunner().invoke(from_command, [*line, *stated, *launch])
    assert done.exit_code == 0, done.output
    cluster = load_scenario(tmp_path / "s.toml").cluster
    assert (cluster.ib.bytes_per_s, cluster.figures.hbm_bytes) == (50e9, 141_000_000_000)
    for wrong, said in (
        ("cluster.hbm=1", "did you mean 'hbm_bytes'"),
        ("cluster.hbm_bytes=x", "must be a number"),
    ):
        failed = CliRunner().invoke(from_command, [*line, "--set", wrong, *launch])
        assert said in str(failed.exception)


@pytest.mark.parametrize("name", ["mi300x", "mi325x", "mi350x", "h20", "b300", "l40s", "tpu-v6e", "tpu-v7"])
def test_one_node_of_new_hardware_is_read(name: str) -> None:
    layout = from_flags("vllm", "-tp 4", model=model_preset("deepseek-v2-lite"), hardware=name)
    assert layout.scenario.cluster.hardware == name


def test_a_rack_that_nvlink_joins_is_one_domain() -> None:
    """EP64 on an NVL72 rack leaves 16 nodes and no NVLink domain; on H100 nodes it leaves 8."""
    flags = "-dp 64 --enable-expert-parallel"
    model = model_preset("deepseek-v3")
    rack = from_flags("vllm", flags, model=model, hardware="gb200-nvl72")
    nodes = from_flags("vllm", flags, model=model, hardware="h100")
    assert (rack.scenario.cluster.gpus_per_node, rack.scenario.cluster.nvlink_domains) == (4, 1)
    assert (nodes.scenario.cluster.gpus_per_node, nodes.scenario.cluster.nvlink_domains) == (8, 8)
    assert "ep_across_nodes" not in [note.code for note in rack.warnings]
    assert "ep_across_nodes" in [note.code for note in nodes.warnings]
    assert isinstance(rack.scenario, Scenario)
    assert take_trip(rack.scenario).log.node_crossings == 0
    two = from_flags("vllm", "-dp 144 --enable-expert-parallel", hardware="gb200-nvl72")
    (note,) = [note for note in two.warnings if note.code == "ep_across_nodes"]
    assert "NVLink domains of 72 GPUs" in note.message
    by_eight = from_flags("vllm", flags, gpus_per_node=8, hardware="gb200-nvl72").scenario.cluster
    assert (by_eight.gpus_per_nvlink_domain, by_eight.nvlink_domains) == (72, 1)


def block_fp8(**sizes: int) -> ModelSpec:
    """DeepSeek-V3 with its FP8 blocks, and some sizes of its own."""
    return replace(model_preset("deepseek-v3"), weights="fp8_block128", **sizes)


@pytest.mark.parametrize(
    ("name", "flags", "sizes", "said"),
    [
        (
            "vllm",
            "-tp 8",
            {"expert_hidden": 1536, "shared_hidden": 1536},
            r"= 192 is not divisible by weight",
        ),
        (
            "vllm",
            "-tp 8",
            {"expert_hidden": 1536, "shared_hidden": 2048},
            r"gate's and up's weight = 192 is not .*blocks of 64 for its Triton kernels alone",
        ),
        (
            "vllm",
            "-tp 32",
            {},
            r"Weight input_size_per_partition = 576 is not divisible by weight quantization block_k = 128",
        ),
        (
            "sglang",
            "--tp 32",
            {},
            r"Weight output_partition_size = 576 is not divisible by weight quantization block_n = 128",
        ),
        (
            "vllm",
            "-tp 128",
            {},
            r"Weight output_partition_size = 192 is not divisible .*block_n = 128\. \(attention, q_b\)",
        ),
        (
            "sglang",
            "--tp 64 --attn-dp-size 64 --ep 64 --moe-a2a-backend deepep --moe-dense-tp-size 1",
            {"shared_hidden": 2000},
            r"= 2000 is not divisible .*\(shared, gate\)",
        ),
        ("sglang", "--tp 32 --ep 32", {}, r"= 576 is not divisible"),
    ],
)
def test_slices_that_cut_an_fp8_block_are_refused(
    name: str, flags: str, sizes: dict[str, int], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        from_flags(name, flags, model=block_fp8(**sizes))
    plain = dict.fromkeys(
        ("weights", "attention_weights", "dense_weights", "shared_weights", "expert_weights"), "bf16"
    )
    from_flags(name, flags, model=replace(block_fp8(**sizes), **plain))


def test_projections_that_are_one_layer_may_differ_in_vllm_and_not_in_sglang() -> None:
    model = replace(
        model_preset("llama-3.1-8b"), weights="fp8_block128", kv_heads=4, head_dim=64, v_head_dim=64
    )
    from_flags("vllm", "-tp 4", model=model)
    with pytest.raises(ConfigError, match=r"output_partition_size = 64 is not divisible .*\(attention, k\)"):
        from_flags("sglang", "--tp 4", model=model)
    with pytest.raises(
        ConfigError, match=r"input_size_per_partition = 64 is not divisible .*\(attention, o\)"
    ):
        from_flags("vllm", "-tp 32", model=model)


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("vllm", "-tp 8"),
        ("vllm", "-tp 8 --enable-expert-parallel"),
        ("vllm", "-dp 32 --enable-expert-parallel"),
        ("sglang", "--tp 16 --ep 16"),
        ("sglang", "--tp 32 --ep 32 --moe-dense-tp-size 1"),
    ],
)
def test_slices_of_whole_fp8_blocks_are_accepted(name: str, flags: str) -> None:
    from_flags(name, flags, model=block_fp8())


def test_trtllm_load_balancer_slots() -> None:
    """288 slots at EP32: 9 experts per GPU, its own 8 and the first of the next rank's."""
    model = model_preset("deepseek-v3")
    config = json.dumps({"load_balancer": {"num_slots": 288}})
    words = ["--tp_size", "32", "--ep_size", "32", "--enable_attention_dp", "--moe_config", config]
    layout = from_flags("trtllm", words, model=model)
    experts = held(layout)
    assert {len(each) for each in experts} == {9}
    assert experts[0] == list(range(9))
    assert experts[31] == [0, *range(248, 256)]
    scenario = layout.scenario
    assert isinstance(scenario, Scenario)
    fp8 = scenario.with_(model=block_fp8())
    spare = residency_of(fp8, 0).weight_bytes_by_part["experts"]
    assert round(spare / 1e9, 1) == 23.0
    plain = from_flags("trtllm", words[:5], model=block_fp8()).scenario
    assert isinstance(plain, Scenario)
    assert round(residency_of(plain, 0).weight_bytes_by_part["experts"] / 1e9, 1) == 20.4


@pytest.mark.parametrize(
    ("balancer", "said"),
    [
        ({"num_slots": 300}, r"num_slots \(300\) must be whole slots on each of 32 EP ranks"),
        ({"num_slots": 224}, "enough for 256 experts"),
        ({"num_slots": "many"}, r"moe_config\.load_balancer\.num_slots='many' must be a whole number"),
    ],
)
def test_trtllm_load_balancer_slots_that_do_not_fit(balancer: dict[str, object], said: str) -> None:
    words = ["--tp_size", "32", "--ep_size", "32", "--moe_config", json.dumps({"load_balancer": balancer})]
    with pytest.raises(ConfigError, match=said):
        from_flags("trtllm", words, model=model_preset("deepseek-v3"))


def test_trtllm_load_balancer_that_is_not_read_is_said() -> None:
    words = ["--tp_size", "8", "--ep_size", "8", "--moe_config"]
    file = from_flags("trtllm", [*words, '{"load_balancer": "lb.yaml"}'], model=moe(8))
    assert "load_balancer_not_read" in [note.code for note in file.warnings]


def test_trtllm_assignments_place_experts_layer_by_layer() -> None:
    """Layer 3 (from 0) starts from its own table, the others from the balancer's default."""
    model = model_preset("deepseek-v3")
    table = [*range(256), *[7] * 32]
    words = ["--tp_size", "32", "--ep_size", "32", "--moe_config"]

    def read(assignments: object) -> Layout:
        balancer = {"num_slots": 288, "initial_global_assignments": assignments}
        return from_flags("trtllm", [*words, json.dumps({"load_balancer": balancer})], model=model)

    scenario = read({"3": table}).scenario
    assert isinstance(scenario, Scenario)
    assert scenario.placement_of(4).slots == tuple(table)
    assert scenario.placement_of(4).ep_ranks_of(7) == (0, *[28] * 5, *[29] * 9, *[30] * 9, *[31] * 9)
    assert scenario.placement_of(5).slots_on(0) == 9
    assert scenario.placement_of(5).experts_of(0) == tuple(range(9))
    for wrong, said in (
        ({"0": table}, r"assignments\.0='0' names a layer without experts"),
        ({"3": table[:5]}, "must list the expert of each of num_slots = 288 slots"),
        ({"3": [0] * 288}, "must hold every expert; 1 has none"),
        ({"3": [999] * 288}, "must be an expert from 0 to 255"),
        ([1], "must be a table of layers"),
    ):
        with pytest.raises(ConfigError, match=said):
            read(wrong)


def test_torchtitan_cuts_experts_over_tp_without_ep() -> None:
    layout = from_flags("torchtitan", "--parallelism.tensor_parallel_degree 4", gpus=8, model=moe(8))
    scenario = layout.scenario
    assert (scenario.mesh.etp, scenario.mesh.ep, scenario.mesh.edp) == (4, 1, 2)
    assert (scenario.plan.contract, scenario.plan.shared_tp) == ("tp", "whole")
    deep = from_flags("torchtitan", "--parallelism.tensor_parallel_degree 4", gpus=8,
                      model=model_preset("deepseek-v2-lite"))  # fmt: skip
    assert deep.scenario.plan.shared_tp == "merged"
    assert "shared_scatter_not_counted" in [note.code for note in deep.warnings]


@pytest.mark.parametrize(("schedule", "second"), [("Interleaved1F1B", 16), ("ZBVZeroBubble", 26)])
def test_torchtitan_module_names_give_the_chunks(schedule: str, second: int) -> None:
    cuts = (0, 6, 16, 26, 32)
    parts = [[f"layers.{i}" for i in range(*pair)] for pair in pairwise(cuts)]
    parts[0].insert(0, "tok_embeddings")
    parts[3] += ["norm", "output"]
    words = [
        "--parallelism.pipeline_parallel_degree",
        "2",
        "--parallelism.pipeline_parallel_schedule",
        schedule,
    ]
    named = "--parallelism.module_fqns_per_model_part"

    def read(listed: object) -> Layout:
        return from_flags(
            "torchtitan", [*words, named, json.dumps(listed)], gpus=8, model=model_preset("llama-3.1-8b")
        )

    scenario = read(parts).scenario
    assert (scenario.plan.chunks, scenario.plan.chunk_layers) == (2, (6, 10, 10, 6))
    assert isinstance(scenario, Scenario)
    assert scenario.layers_of(0)[6] == second + 1
    for wrong, said in (
        (parts[:3], "num_stages 3 must be evenly divisible by pp_degree 2"),
        (parts[::-1], r"they must be layers\.0 to layers\.31 in order"),
        ([["layers.0"], 5], "must be a list of lists of names"),
    ):
        with pytest.raises(ConfigError, match=said):
            read(wrong)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("Qwen/Qwen3-235B-A22B-FP8", "fp8"),
        ("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic", "fp8"),
        ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "int4_zero_g128"),
        ("Qwen/Qwen3-235B-A22B-GPTQ-Int4", "int4_zero_g128"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", None),
        ("nvidia/Llama-3.1-405B-Instruct-NVFP4", "nvfp4"),
        ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", "nf4"),
        ("deepseek-ai/DeepSeek-V3-bf16", "bf16"),
        ("QuantTrio/DeepSeek-V3-AWQ", None),
        ("nvidia/Llama-3.1-8B-FP8-INT4", None),
    ],
)
def test_a_name_that_says_how_weights_are_stored_is_believed_and_said(name: str, stored: str | None) -> None:
    """What cannot be told, as a model in FP8 made AWQ, keeps the sizes and says what it lacks."""
    layout = from_line(f"vllm serve {name} -tp 8")
    codes = [note.code for note in layout.warnings]
    if stored is None:
        assert "not_modelled" in codes or "model_unknown" in codes
        return
    assert "format_of_name" in codes
    assert "not_modelled" not in codes
    assert isinstance(layout.scenario, Scenario)
    assert layout.scenario.model.attention_weights == stored

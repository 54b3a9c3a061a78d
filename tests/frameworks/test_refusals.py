"""What the frameworks refuse is refused with the same rule, and with a flag that works."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from frameworks.case_flags import read

from tracer.errors import ConfigError
from tracer.frameworks import from_flags
from tracer.model.spec import ModelSpec

MOE = ModelSpec(layers=8, hidden=4096, heads=64, kv_heads=8, experts=256, top_k=8, expert_hidden=2048)
GROUPED = ModelSpec(layers=8, hidden=4096, heads=64, kv_heads=8)

#: (framework, flags, GPUs, model) of each entry of errors.json, by a part of its message.
LAUNCHES: dict[str, tuple[str, str, int, ModelSpec | None]] = {
    "8 is not divisible by 3": ("deepspeed", "--ep_size 3", 8, None),
    "16 is not divisible by 3": ("deepspeed", "--num-mp 3", 16, None),
    "pp_size=1 only": ("deepspeed", "--autotp-size 2 --autoep-size 2 --num-stages 2", 16, None),
    "expert_tensor_parallel_size=2 is reserved": (
        "deepspeed",
        "--autotp-size 2 --autoep-size 2 --expert-tensor-parallel-size 2",
        8,
        None,
    ),
    "autoep_size > 1": ("deepspeed", "--autotp-size 2 --autoep-size 1", 8, None),
    "interleaved schedule": ("megatron", "--virtual-pipeline-model-parallel-size 2", 8, None),
    "The size of (pp)": ("megatron", "--pipeline-model-parallel-size 2 --order tp-dp", 8, None),
    "decode_context_parallel_size (3)": ("sglang", "--tp-size 8 --dcp-size 3", 8, None),
    "decode_context_parallel_size (0)": ("sglang", "--tp-size 8 --dcp-size 0", 8, None),
    "attn_dp_size * attn_cp_size": ("sglang", "--tp-size 8 --attn-dp-size 3", 8, None),
    "tp_size must be divisible by moe_dp_size": ("sglang", "--tp-size 8 --moe-dp-size 3", 8, None),
    "PP is not supported": (
        "sglang",
        "--tp-size 4 --pp-size 2 --moe-dp-size 2 --attn-cp-size 2 --ep-size 2",
        8,
        None,
    ),
    "attn_cp_size != moe_dp_size": ("sglang", "--tp-size 8 --moe-dp-size 2 --ep-size 4", 8, None),
    "must equal tp_size": ("sglang", "--tp-size 8 --dwdp-size 4", 8, None),
    "does not support --enable-prefill-cp": (
        "sglang",
        "--tp-size 8 --dcp-size 2 --enable-prefill-cp --cp-strategy zigzag",
        8,
        None,
    ),
    "expert parallel size must be 1 or the same": (
        "sglang",
        "--tp-size 8 --ep-size 4 --moe-runner-backend flashinfer_cutlass",
        8,
        None,
    ),
    "must be divisible by dcp_size": ("vllm", "-tp 8 -dcp 3", 8, None),
    "Decode context parallelism for GQA/MQA": ("vllm", "-tp 8 -dcp 2", 8, GROUPED),
    "must be <= data_parallel_size": ("vllm", "-tp 1 -dp 4 -dpl 8", 8, None),
    "EPLB requires": ("vllm", "--enable-expert-parallel --enable-eplb", 1, None),
    "is larger than the number of available GPUs": ("vllm", "-tp 16", 8, None),
    "Elastic EP": (
        "vllm",
        "-dp 4 -pp 2 --enable-expert-parallel --enable-eplb --enable-elastic-ep",
        8,
        None,
    ),
    "n_physical_experts=256": ("vllm", "-dp 3 --enable-expert-parallel --enable-eplb", 3, MOE),
}
FRAMEWORK = {
    "DeepSpeed": "deepspeed",
    "Megatron-LM": "megatron",
    "SGLang": "sglang",
    "vLLM": "vllm",
    "torchtitan": "torchtitan",
    "TensorRT-LLM": "tensorrt-llm",
}
TORCHTITAN = {
    "dp_replicate": "data_parallel_replicate_degree",
    "dp_shard": "data_parallel_shard_degree",
    "tp": "tensor_parallel_degree",
    "ep": "expert_parallel_degree",
}
TRTLLM = {"tp": "--tp_size", "cp": "--cp_size", "moe_tp": "--moe_tp_size", "moe_ep": "--ep_size"}


def launch_of(case: dict[str, Any]) -> tuple[str, str, int, ModelSpec | None] | None:
    """The launch that an entry of errors.json is about; None for a generator without a launch."""
    message = case["error"] or ""
    for part, launch in LAUNCHES.items():
        if part in message:
            return launch
    config = dict(case["config"])
    if "RankGenerator" in config:
        return None
    gpus = config.pop("world_size", None) or config.pop("world")
    if case["framework"] == "torchtitan":
        words = [f"--parallelism.{TORCHTITAN[key]} {value}" for key, value in config.items()]
    elif case["framework"] == "TensorRT-LLM":
        words = [f"{TRTLLM[key]} {value}" for key, value in config.items()]
    else:
        words = [f"--{key.replace('_', '-')} {value}" for key, value in config.items()]
    return FRAMEWORK[case["framework"]], " ".join(words), gpus, None


def words_of(message: str) -> set[str]:
    """Words and numbers of a rule, without the error class in front and the placeholders in it."""
    message = re.sub(r"^(assert|\w*Error):", "", message)
    message = re.split(r" / |; num_routed| \.\.\. |\. Adjust", message)[0]
    return set(re.findall(r"[A-Za-z_]{3,}|\d+", re.sub(r"\{\w+\}|\([A-Za-z]\)|haven't\w+", "", message)))


#: An entry of an older release: 0.19.8 takes ZeRO-3 with folding.
LIFTED = "AutoEP+AutoTP with ZeRO stage 3"
REFUSED = [case for case in read("errors") if case["error"] and LIFTED not in case["error"]]
ERRORS = [case for case in REFUSED if launch_of(case) is not None]


def test_only_one_given_error_has_no_launch() -> None:
    """One RankGenerator with EP and CP: Megatron's launcher always makes two."""
    rest = [case["error"] for case in REFUSED if case not in ERRORS]
    assert len(rest) == 1
    assert rest[0].startswith("Both EP and CP > 1")


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: f"{case['framework']} {case['error'][:60]}")
def test_given_errors(case: dict[str, Any]) -> None:
    launch = launch_of(case)
    assert launch is not None
    name, flags, gpus, model = launch
    with pytest.raises(ConfigError, match="is refused by") as caught:
        from_flags(name, flags, gpus=gpus, model=model)
    missing = words_of(case["error"]) - set(re.findall(r"[A-Za-z_]{3,}|\d+", caught.value.rule))
    assert not missing, (missing, caught.value.rule)


def mended(flags: str, fix: str, gpus: int) -> tuple[str, int] | None:
    """The flags with what a fix says, and the GPUs; None when the fix names no flag to try."""
    found = re.match(r"(?:try|drop|add) (-\S+)(?: ([^\s(]+))?", fix)
    if found is None:
        return None
    name, value = found.groups()
    if name == "--gpus":
        return flags, int(value)
    words = shlex.split(flags)
    if name in words:
        at = words.index(name)
        del words[at : at + (2 if len(words) > at + 1 and not words[at + 1].startswith("-") else 1)]
    if fix.startswith("drop"):
        return shlex.join(words), gpus
    return shlex.join([*words, name, *([value] if value else [])]), gpus


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: f"{case['framework']} {case['error'][:60]}")
def test_the_fix_works(case: dict[str, Any]) -> None:
    launch = launch_of(case)
    assert launch is not None
    name, flags, gpus, model = launch
    with pytest.raises(ConfigError, match="is refused by") as caught:
        from_flags(name, flags, gpus=gpus, model=model)
    again = mended(flags, caught.value.fix, gpus)
    assert again is not None, caught.value.fix
    assert from_flags(name, again[0], gpus=again[1], model=model).world_size >= 1


def test_folding_takes_zero_3_since_it_was_composed() -> None:
    layout = from_flags("deepspeed", "--autotp-size 2 --autoep-size 4 --zero-stage 3", gpus=8)
    assert layout.framework_groups["ep"][0] == [0, 1, 2, 3]


def test_what_passes_in_errors_json_passes() -> None:
    (case,) = [case for case in read("errors") if not case["error"]]
    launch = launch_of(case)
    assert launch is not None
    layout = from_flags(launch[0], launch[1], gpus=launch[2])
    assert layout.scenario.mesh.ep == 64


def test_one_generator_holds_ep_or_cp() -> None:
    from tracer.frameworks.megatron.checks import check_one_generator
    from tracer.frameworks.notes import Refusal

    check_one_generator(ep=2, cp=1)
    with pytest.raises(Refusal, match="Both EP and CP > 1 in not allow in one rank generator"):
        check_one_generator(ep=2, cp=2)


MORE = [
    ("megatron", "--tensor-model-parallel-size 3", 8, "world_size (8) is not divisible by 3"),
    (
        "megatron",
        "--context-parallel-size 4 --hierarchical-context-parallel-sizes 2 4",
        8,
        "hierarchical_context_parallel_sizes",
    ),
    ("megatron", "--num-experts 6 --expert-model-parallel-size 4", 8, "should be a multiple of"),
    ("megatron", "--context-parallel-size 2 --seq-length 1022", 8, "2 * context_parallel_size"),
    ("megatron", "--num-distributed-optimizer-instances 3", 8, "DistOpt shard factor"),
    ("megatron", "--model-parallel-size 2", 8, "no longer valid"),
    (
        "megatron",
        "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --expert-model-parallel-size 2 "
        "--expert-tensor-parallel-size 1 --context-parallel-size 2 --use-tp-pp-dp-mapping",
        16,
        "must be the same, but got 2 and 4",
    ),
    ("vllm", "-tp 2 -pcp 2 -dcp 3", 4, "valid DCP sizes are [1, 2, 4]"),
    ("vllm", "-dp 4", 2, "World size (4, data parallel replicas included)"),
    ("vllm", "-tp 2 --enable-eplb", 2, "enable_expert_parallel must be True"),
    ("vllm", "-tp 2 --expert-parallel-size 2", 2, "unrecognized arguments"),
    ("vllm", "-tp 2 --all2all-backend nonsense", 2, "is not one of"),
    ("vllm", "-tp 2 -dpe", 2, "data_parallel_external_lb can only be set"),
    ("vllm", "-tp 3 --distributed-executor-backend external_launcher", 8, "does not divide"),
    ("sglang", "--tp-size 8 --dp-size 2 --attn-dp-size 2", 16, "are not supported"),
    ("sglang", "--tp-size 4 --dp-size 2 --nnodes 2", 8, "multi-node data-parallel replicas"),
    ("sglang", "--tp-size 8 --ep-size 3", 8, "must be divisible by ep_size"),
    ("sglang", "--tp-size 16", 8, "16 GPUs are needed and 8 are there"),
    ("sglang", "--tp-size 8 --moe-dense-tp-size 2", 8, "moe_dense_tp_size only supports"),
    ("tensorrt-llm", "--tp_size 16", 8, "world_size must equal to tp_size"),
    ("tensorrt-llm", "--tp_size 8 --cluster_size 2 --ep_size 2", 8, "moe_cluster_size 2 needs"),
    ("tensorrt-llm", '--tp_size 8 --cp_config \'{"cp_type": "SPIRAL"}\'', 8, "Invalid cp_type: SPIRAL"),
    ("torchtitan", "--parallelism.expert_tensor_parallel_degree 2", 8, "PR #3167"),
    ("torchtitan", "--parallelism.data_parallel_shard_degree 0", 8, "dp_shard must -1 or >=1"),
    ("nanotron", "--dp 2 --tp 2 --expert_parallel_size 2", 4, "(2,1,2,1,2)"),
    ("nanotron", "--dp 2 --tp 2", 8, "is not WORLD_SIZE (8)"),
    ("vllm", "-tp 4 -dp 4 -dpl 1 --nnodes 2", 16, "number of data parallel node groups (4"),
    ("vllm", "-tp 8 --nnodes 3", 24, "`--nnodes 3` must evenly divide the total world size (8)"),
    ("vllm", "-tp 8 -dp 2 --nnodes 2 -dpb ray", 16, "requires `--data-parallel-backend mp`"),
    ("vllm", "-tp 8 -dp 2 --nnodes 2 --node-rank 2", 16, "must be between 0 and 1"),
    ("vllm", "-dp 2 -dph -dpe", 2, "cannot be enabled together"),
    ("vllm", "-dp 2 -dpe", 2, "requires a data-parallel rank"),
    ("vllm", "-dp 4 -dpn 0 -dpl 2", 4, "requires `--data-parallel-size-local 1`"),
    ("vllm", "-dp 4 -dph", 4, "requires `--data-parallel-size-local`"),
    ("vllm", "-tp 2 -pp 2 --distributed-executor-backend uni", 4, "Pipeline Parallelism without Ray"),
    ("vllm", "-tp 2 --distributed-executor-backend cloud", 2, "Unrecognized distributed executor"),
    ("sglang", "--tp-size 4 --enable-eplb", 4, "expert parallel size above 1"),
    ("sglang", "--tp-size 8 --moe-a2a-backend flashinfer", 8, "Flashinfer MoE A2A is only supported"),
    ("sglang", "--tp-size 4 --pp-size 2 --elastic-ep-backend nixl", 8, "under elastic EP"),
    ("deepspeed", "--zero-stage 5", 8, "is no ZeroStageEnum"),
    ("deepspeed", "--autoep-size 2 --expert-tensor-parallel-size 2", 8, "is reserved for"),
    (
        "deepspeed",
        "--autotp-size 2 --autoep-size 2 --use-data-before-expert-parallelism",
        8,
        "use_data_before_expert_parallel_ is not supported",
    ),
    ("deepspeed", "--num-experts 6 --ep-size 4", 8, "Number of experts (6)"),
    ("deepspeed", "--autotp-size 2 --autoep-size 3", 8, "must be divisible by ep*etp"),
    ("deepspeed", "--sequence-parallel-size 3", 8, "sequence_parallel_size 3"),
]


@pytest.mark.parametrize(("name", "flags", "gpus", "rule"), MORE, ids=lambda value: str(value)[:50])
def test_other_refusals(name: str, flags: str, gpus: int, rule: str) -> None:
    with pytest.raises(ConfigError, match="is refused by") as caught:
        from_flags(name, flags, gpus=gpus)
    assert rule in caught.value.rule
    assert caught.value.fix


def test_the_documented_trap_of_the_megatron_guide() -> None:
    """TP2 PP16 EP64 on 1024 GPUs needs ETP 1: that is the first fix offered."""
    flags = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 16 --expert-model-parallel-size 64"
    with pytest.raises(ConfigError, match=r"size \(2048\); try --expert-tensor-parallel-size 1$"):
        from_flags("megatron", flags, gpus=1024)


DENSE = ModelSpec(layers=8, hidden=4096, heads=32, kv_heads=8)
LATENT = ModelSpec(
    layers=8,
    hidden=4096,
    heads=128,
    experts=256,
    top_k=8,
    expert_hidden=2048,
    kv_lora_rank=512,
    qk_rope_head_dim=64,
)


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        ("-tp 8 --enable-expert-parallel", "Number of experts in the model must be greater than 0"),
        ("-dp 2 -dpn 0", "Non-MoE models do not support external data parallel mode"),
        ("-dp 2 -dpe --nnodes 2", "Non-MoE models do not support external data parallel mode"),
    ],
)
def test_a_dense_model_has_no_experts_and_no_external_replicas(flags: str, rule: str) -> None:
    with pytest.raises(ConfigError, match="is refused by vLLM") as caught:
        from_flags("vllm", flags, model=DENSE)
    assert rule in caught.value.rule
    assert from_flags("vllm", flags, model=MOE).world_size >= 2


@pytest.mark.parametrize("spelling", ["--enable-prefill-cp", "--enable-nsa-prefill-context-parallel"])
def test_prefill_cp_sets_the_sizes_of_a_model_with_latent_attention(spelling: str) -> None:
    flags = f"--tp 8 --attn-dp-size 2 {spelling} --cp-strategy zigzag"
    layout = from_flags("sglang", flags, model=LATENT)
    assert [layout.framework_groups[name][0] for name in ("attn_tp", "attn_cp", "moe_ep")] == [
        [0],
        [0, 1, 2, 3],
        list(range(8)),
    ]
    assert "prefill_cp_sets_sizes" in {note.code for note in layout.warnings}
    plain = from_flags("sglang", flags, model=MOE)
    assert plain.framework_groups["attn_tp"][0] == [0, 1, 2, 3]
    unnamed = from_flags("sglang", flags)
    assert "prefill_cp_needs_a_model" in {note.code for note in unnamed.warnings}


def test_eplb_has_a_group_of_its_own() -> None:
    layout = from_flags("vllm", "-tp 2 -dp 2 --enable-expert-parallel --enable-eplb", model=MOE)
    assert layout.framework_groups["eplb"] == layout.framework_groups["ep"] == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("instances", "intra", "inter"),
    [(2, [0, 4], [0, 8]), (4, [0], [0, 4, 8, 12])],
    ids=["whole CP", "part of CP"],
)
def test_optimizer_instances_cut_the_dp_cp_group(instances: int, intra: list[int], inter: list[int]) -> None:
    flags = "--tensor-model-parallel-size 4 --context-parallel-size 2 --num-distributed-optimizer-instances"
    layout = from_flags("megatron", f"{flags} {instances}", gpus=16)
    assert layout.framework_groups["intra_dp_cp"][0] == intra
    assert layout.framework_groups["inter_dp_cp"][0] == inter


@pytest.mark.parametrize(
    ("name", "flags", "rule"),
    [
        ("megatron", "--tensor-model-parallel 2", "abbreviations are not taken"),
        ("sglang", "--tp 2 --pp 2", "is ambiguous: it could be --pp-async-batch-depth"),
    ],
)
def test_the_beginning_of_a_flag_is_no_guess(name: str, flags: str, rule: str) -> None:
    with pytest.raises(ConfigError, match="write --") as caught:
        from_flags(name, flags, gpus=8)
    assert rule in caught.value.rule


def test_switches_of_a_deepspeed_script_are_switches() -> None:
    layout = from_flags("deepspeed", "--deepspeed --moe --num-mp 2", gpus=8)
    assert (layout.scenario.mesh.tp, layout.unknown_flags) == (2, ())
    assert from_flags("deepspeed", "--num-mp 2 --deepspeed", gpus=8).scenario.mesh.dp == 4

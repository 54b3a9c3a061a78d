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
    "ZeRO stage 3": ("deepspeed", "--autotp-size 2 --autoep-size 4 --zero-stage 3", 8, None),
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


ERRORS = [case for case in read("errors") if case["error"] and launch_of(case) is not None]


def test_only_one_given_error_has_no_launch() -> None:
    """One RankGenerator with EP and CP: Megatron's launcher always makes two."""
    rest = [case["error"] for case in read("errors") if case["error"] and case not in ERRORS]
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

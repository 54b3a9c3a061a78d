"""Every flag that an importer knows changes the groups, the scenario or a warning, or is refused.

A flag that is read and changes nothing is a confident wrong answer: it belongs to the flags that shape
nothing, or to those that are said to be not modelled.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from tracer.errors import ConfigError
from tracer.frameworks import FRAMEWORKS, from_flags
from tracer.frameworks.flags import Flag, Kind
from tracer.frameworks.registry import framework
from tracer.model.configs import model_preset

MEGATRON_MODEL = (
    "--num-layers 8 --hidden-size 512 --num-attention-heads 16 --seq-length 2048 --num-experts 16 --swiglu "
    "--moe-router-topk 4 --vocab-size 1000 --expert-model-parallel-size 4 --moe-ffn-hidden-size 128"
)
BASES = {
    "megatron": (
        MEGATRON_MODEL,
        f"{MEGATRON_MODEL} --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
        "--context-parallel-size 2 --sequence-parallel --group-query-attention",
        f"{MEGATRON_MODEL} --multi-latent-attention --moe-router-num-groups 4 "
        "--moe-token-dispatcher-type flex",
        f"{MEGATRON_MODEL} --moe-router-group-topk 2 --moe-shared-expert-intermediate-size 256 "
        "--context-parallel-size 4",
        "--tensor-model-parallel-size 2",
    ),
    "vllm": (
        "-tp 4",
        "-tp 4 -dp 2 --enable-expert-parallel --enable-eplb",
        "-tp 2 -dp 4",
        "-tp 2 -dp 4 --enable-expert-parallel --data-parallel-size-local 2",
        "-tp 16 -dcp 4",
        "",
    ),
    "sglang": (
        "--tp 8",
        "--tp 8 --attn-dp-size 4 --ep-size 8 --moe-a2a-backend deepep",
        "--tp 8 --ep-size 8 --enable-eplb --attn-dp-size 8",
        "--tp 8 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
        "--tp 16 --dcp-size 4",
        "--tp 8 --dp-size 2",
    ),
    "tensorrt-llm": (
        "--tp_size 8",
        "--tp_size 8 --ep_size 8 --enable_attention_dp",
        "--tp_size 4 --cp_size 2",
        "--tp_size 2 --pp_size 2",
    ),
    "torchtitan": (
        "",
        "--parallelism.tensor_parallel_degree 2 --parallelism.context_parallel_degree 2",
        "--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule Interleaved1F1B",
    ),
    "deepspeed": (
        "--ep-size 2 --num-experts 8",
        "--autotp-size 2 --autoep-size 2 --num-experts 8 --autoep",
        "--num-pp 2 --num-mp 2",
        "--zero-stage 3",
        "--ep-size 2 --num-mp 2 --num-experts 8",
    ),
    "nanotron": (
        "--tp 2 --pp 2 --dp 4",
        "--tp 2 --pp 2 --dp 4 --model.model_config.num_hidden_layers 8 --model.model_config.hidden_size 64 "
        "--model.model_config.intermediate_size 256 --model.model_config.num_attention_heads 8",
    ),
    "accelerate": (
        "--parallelism-config-tp-size 2 --parallelism-config-dp-shard-size 8",
        "--parallelism-config-cp-size 2 --parallelism-config-dp-shard-size 8 --use-fsdp",
        "",
    ),
    "maxtext": (
        "--ici-fsdp-parallelism 8 --dcn-data-parallelism 2 --hardware gpu",
        "--ici-fsdp-parallelism -1 --dcn-data-parallelism 1",
        "--ici-fsdp-parallelism 8 --dcn-data-parallelism -1 --num-slices 2",
    ),
}
MODELS = {
    "vllm": "deepseek-v2-lite",
    "sglang": "deepseek-v2-lite",
    "tensorrt-llm": "qwen3-30b-a3b",
    "torchtitan": "qwen3-30b-a3b",
}
VALUES = {
    "order": ("tp-cp-ep-pp-dp",),
    "moe_layer_freq": ("2",),
    "cp_config": ('{"cp_type": "HELIX"}',),
    "dwdp_config": ('{"dwdp_size": 4, "num_groups": 2, "num_experts_per_worker": 32}',),
    "moe_config": ('{"load_balancer": {"num_slots": 288}}', '{"backend": "CUTLASS"}'),
    "eplb_config": ('{"num_redundant_experts": 8}',),
    "model": ("deepseek-ai/DeepSeek-V3", "qwen3-32b"),
    "model_flavor": ("8B",),
    "pp_partition": ("20,28",),
    "pipeline_model_parallel_layout": ("Et*4|t*4L",),
    "deepep_mode": ("normal", "low_latency"),
    "quantization": ("fp8",),
    "distributed_executor_backend": ("uni", "nothing", "external_launcher"),
    "all2all_backend": ("deepep_low_latency",),
    "tp_mode": ("REDUCE_SCATTER",),
    "dtype": ("float16",),
    "kv_cache_dtype": ("fp8", "fp8_e4m3"),
    "cp_comm_type": ("all_gather", "a2a"),
    "dcp_comm_backend": ("a2a",),
    "hierarchical_context_parallel_sizes": ("2 2",),
    "moe_router_score_function": ("sigmoid",),
    "tokenizer_type": ("NullTokenizer",),
    "normalization": ("RMSNorm",),
    "position_embedding_type": ("rope",),
    "context_parallel_rotate_method": ("alltoall",),
    "spmd_backend": ("full_dtensor",),
    "pipeline_parallel_schedule": ("ZBVZeroBubble",),
    "context_parallel_load_balancer": ("ptrr",),
    "fsdp_reshard_after_forward": ("always", "never"),
    "zero_stage": ("1", "2", "3"),
    "distributed_type": ("FSDP", "MEGATRON_LM", "DEEPSPEED"),
}
BESIDE = {
    # One alone never leaves a whole split where there was one.
    "account_for_embedding_in_pipeline_split": "--account-for-loss-in-pipeline-split --num-layers 10 "
    "--pipeline-model-parallel-size 4",
    "account_for_loss_in_pipeline_split": "--account-for-embedding-in-pipeline-split --num-layers 10 "
    "--pipeline-model-parallel-size 4",
    "enable_prefill_cp": "--cp-strategy zigzag",
    "model_flavor": "--model.name llama3",
    "tokenizer_type": "--vocab-size 1024",
    "dp_shard_size": "--use-fsdp",
    "use_megatron_fsdp": "--data-parallel-sharding-strategy optim_grads_params",
    "data_parallel_sharding_strategy": "--use-megatron-fsdp",
}
"""Flags that others must stand beside."""
REFUSED = "refused"


def flags_of(name: str) -> list[Flag]:
    """The flags that shape the mesh or the model; a port or a rank of a node changes nothing by right."""
    return [flag for flag in framework(name).flags if flag.shapes or flag.of_model]


def words_of(flag: Flag) -> list[str]:
    """The flag with other valid values."""
    if flag.kind is Kind.SWITCH:
        return [f"{flag.name} {BESIDE.get(flag.dest, '')}"]
    if flag.kind is Kind.ON_OFF:
        return [f"{flag.name}={'false' if flag.default is True else 'true'}"]
    values = VALUES.get(flag.dest) or flag.choices
    if not values:
        sizes = [size for size in (0, 1, 2, 3, 4, 5, 8, 16, 32) if size >= flag.low]
        values = tuple(map(str, sizes)) if flag.kind is Kind.INT else ("2",)
    others = [value for value in values if value != str(flag.default)]
    beside = BESIDE.get(flag.dest, "")
    quote = "'" if flag.kind is Kind.JSON else ""
    return [f"{flag.name} {quote}{value}{quote} {beside}" for value in others]


@cache
def what_comes(name: str, line: str, with_model: bool, gpus: int | None = 16) -> tuple[object, ...]:
    """Groups, scenario and warnings of a launch, or the refusal."""
    model = model_preset(MODELS[name]) if with_model and name in MODELS else None
    try:
        layout = from_flags(name, line, gpus=gpus, model=model)
    except ConfigError as error:
        return (REFUSED, error.field, str(error.got), error.rule)
    groups = {
        word: (walk.size, tuple(map(tuple, walk.listed()))) for word, walk in layout.reading.groups.items()
    }
    notes = tuple((note.code, note.message) for note in layout.warnings)
    return (str(sorted(groups.items())), str(layout.scenario.to_dict()), str(layout.expert_ranks), notes)


def changes(name: str, flag: Flag) -> bool:
    """Whether an accepted value of the flag makes a difference beside some base line, or none is accepted."""
    accepted = False
    models = (False, True) if name in MODELS else (False,)
    for base, with_model, gpus in product(BASES[name], models, (16, 32, 8, None)):
        before = what_comes(name, f"{base} {BESIDE.get(flag.dest, '')}", with_model, gpus)
        for words in words_of(flag):
            after = what_comes(name, f"{base} {words}", with_model, gpus)
            if REFUSED not in after and after != before:
                return True
            accepted = accepted or REFUSED not in after
    return not accepted


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_base_lines_are_launches(name: str) -> None:
    for base in BASES[name]:
        found = [what_comes(name, base, name in MODELS, gpus) for gpus in (16, 32, 8, None)]
        assert any(REFUSED not in each for each in found), found[0]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_flag_changes_something_or_is_refused(name: str) -> None:
    silent = [flag.dest for flag in flags_of(name) if not changes(name, flag)]
    assert silent == []


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_value_that_is_no_choice_is_refused(name: str) -> None:
    for flag in framework(name).flags:
        if flag.choices:
            with pytest.raises(ConfigError, match=r"must be one of"):
                from_flags(name, f"{flag.name} no_such_choice", gpus=16)

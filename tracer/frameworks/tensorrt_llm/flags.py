"""TensorRT-LLM's flags (trtllm-serve, trtllm-bench) and the LlmArgs keys of its YAML files."""

from __future__ import annotations

from tracer.frameworks.flags import Flag, Kind, model_flag

TP, PP, CP = "tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size"
MOE_EP, MOE_TP, CLUSTER = (
    "moe_expert_parallel_size",
    "moe_tensor_parallel_size",
    "moe_cluster_parallel_size",
)

FLAGS = (
    Flag("tensor_parallel_size", ("--tp_size", "--tensor_parallel_size", "--tp"), default=1),
    Flag("pipeline_parallel_size", ("--pp_size", "--pipeline_parallel_size", "--pp"), default=1),
    Flag("context_parallel_size", ("--cp_size", "--context_parallel_size"), default=1),
    # None: the quotient of the other, and moe_tp = tp where neither is given.
    Flag("moe_expert_parallel_size", ("--ep_size", "--moe_expert_parallel_size", "--ep", "--moe_ep_size")),
    Flag("moe_tensor_parallel_size", ("--moe_tensor_parallel_size", "--moe_tp_size")),
    Flag(
        "moe_cluster_parallel_size",
        ("--cluster_size", "--moe_cluster_parallel_size", "--moe_cluster_size"),
    ),
    Flag("enable_attention_dp", ("--enable_attention_dp",), Kind.ON_OFF, False),
    Flag(
        "enable_lm_head_tp_in_adp",
        ("--enable_lm_head_tp_in_adp",),
        Kind.ON_OFF,
        False,
        lacks="an LM head in slices over TP while attention runs by replicas",
    ),
    Flag("cp_config", ("--cp_config",), Kind.JSON),
    Flag("gpus_per_node", ("--gpus_per_node",)),
    Flag("pp_partition", ("--pp_partition",), Kind.INTS),
    Flag("dwdp_config", ("--dwdp_config",), Kind.JSON),
    Flag("moe_config", ("--moe_config",), Kind.JSON),
    Flag("config_file", ("--config", "--extra_llm_api_options"), Kind.TEXT, shapes=False),
    model_flag("model", "--model", "--model_path"),
    model_flag("dtype", "--dtype", default="auto"),
    model_flag("kv_cache_dtype", "--kv_cache_dtype", default="auto", keys=("kv_cache_config.dtype",)),
)

CP_TYPES = ("ULYSSES", "STAR", "RING", "HELIX", "ATTN2D")

"""vLLM's flags that shape the mesh, with their short forms (``-tp 8``; ``-tp8`` is not one of them)."""

from tracer.frameworks.flags import Flag, Kind, model_flag
from tracer.frameworks.value_formats import DTYPES

KV_DTYPES = (
    *("auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "nvfp4_ds_mla"),
    *("turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc", "octave_k3v4"),
    *("octave_k3v3", "octave_k3v3_compact", "ultraquant_4bit", "int4_per_token_head", "int8_per_token_head"),
    *("fp8_per_token_head", "nvfp4", "nvfp4_4over6"),
)
"""CacheDType of ``config/cache.py``."""

ELASTIC = "ranks that come and go while it serves"

FLAGS = (
    Flag("tensor_parallel_size", ("--tensor-parallel-size", "-tp"), default=1),
    Flag("pipeline_parallel_size", ("--pipeline-parallel-size", "-pp"), default=1),
    Flag("prefill_context_parallel_size", ("--prefill-context-parallel-size", "-pcp"), default=1),
    Flag("decode_context_parallel_size", ("--decode-context-parallel-size", "-dcp"), default=1),
    Flag("data_parallel_size", ("--data-parallel-size", "-dp"), default=1),
    Flag("data_parallel_size_local", ("--data-parallel-size-local", "-dpl"), low=0),
    Flag("data_parallel_start_rank", ("--data-parallel-start-rank", "-dpr"), low=0, shapes=False),
    Flag("data_parallel_rank", ("--data-parallel-rank", "-dpn"), low=0, shapes=False),
    Flag("data_parallel_address", ("--data-parallel-address", "-dpa"), Kind.TEXT, shapes=False),
    Flag("data_parallel_rpc_port", ("--data-parallel-rpc-port", "-dpp"), default=29550, shapes=False),
    Flag(
        "data_parallel_backend", ("--data-parallel-backend", "-dpb"), Kind.TEXT, "mp", choices=("mp", "ray")
    ),
    # Who picks the replica of a request: what is refused depends on it, no group and no hop.
    Flag("data_parallel_hybrid_lb", ("--data-parallel-hybrid-lb", "-dph"), Kind.ON_OFF, False, shapes=False),
    Flag(
        "data_parallel_external_lb",
        ("--data-parallel-external-lb", "-dpe"),
        Kind.ON_OFF,
        False,
        shapes=False,
    ),
    Flag("nnodes", ("--nnodes", "-n"), default=1),
    Flag("node_rank", ("--node-rank", "-r"), default=0, low=0, shapes=False),
    Flag("distributed_executor_backend", ("--distributed-executor-backend",), Kind.TEXT),
    Flag("enable_expert_parallel", ("--enable-expert-parallel", "-ep"), Kind.ON_OFF, False),
    Flag("all2all_backend", ("--all2all-backend",), Kind.TEXT),
    Flag("enable_eplb", ("--enable-eplb",), Kind.ON_OFF, False),
    Flag("eplb_config", ("--eplb-config",), Kind.JSON),
    Flag("num_redundant_experts", ("--num-redundant-experts",), low=0),
    Flag(
        "expert_placement_strategy",
        ("--expert-placement-strategy",),
        Kind.TEXT,
        "linear",
        choices=("linear", "round_robin"),
    ),
    Flag("enable_elastic_ep", ("--enable-elastic-ep",), Kind.ON_OFF, False, lacks=ELASTIC),
    Flag("dcp_comm_backend", ("--dcp-comm-backend",), Kind.TEXT, choices=("ag_rs", "a2a")),
    Flag(
        "dcp_kv_cache_interleave_size",
        ("--dcp-kv-cache-interleave-size", "--cp-kv-cache-interleave-size"),
        default=1,
    ),
    # Proposed in PR #52099 and closed: EP is every rank of a stage, or off.
    Flag("expert_parallel_size", ("--expert-parallel-size",)),
    Flag("config_file", ("--config",), Kind.TEXT, shapes=False),
    model_flag("model", "--model"),
    model_flag("dtype", "--dtype", default="auto", choices=DTYPES),
    model_flag("kv_cache_dtype", "--kv-cache-dtype", default="auto", choices=KV_DTYPES),
    model_flag("quantization", "--quantization", "-q"),
)

REMOVED_BACKENDS = ("naive", "pplx")
SPLIT_BACKENDS = (
    *("allgather_reducescatter", "deepep_high_throughput", "deepep_low_latency", "deepep_v2"),
    *("flashinfer_nvlink_one_sided", "passthrough", "mori_high_throughput", "mori_low_latency", "nixl_ep"),
)
"""Backends whose MoE layers split tokens over TP before dispatch (use_sequence_parallel_moe)."""
BACKENDS = (*SPLIT_BACKENDS, "moonep", "flashinfer_nvlink_two_sided")
BACKEND_ALIASES = {"flashinfer_all2allv": "flashinfer_nvlink_two_sided"}
ROUND_ROBIN_BACKENDS = ("deepep_low_latency", "nixl_ep")
LOW_LATENCY_BACKENDS = ("deepep_low_latency", "mori_low_latency", "nixl_ep")

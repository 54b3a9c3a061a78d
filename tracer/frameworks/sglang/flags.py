"""SGLang's flags that shape the mesh, with the deprecated ones that older commands still use."""

from tracer.frameworks.flags import Flag, Kind, model_flag
from tracer.frameworks.value_formats import DTYPES

KV_DTYPES = ("auto", "fp8_e5m2", "fp8_e4m3", "mxfp8", "bf16", "bfloat16", "nvfp4", "fp4_mx_block16")

A2A_BACKENDS = (
    *("none", "deepep", "mooncake", "nixl", "mori", "ascend_fuseep", "flashinfer", "megamoe", "deepep_v2"),
    *("ascend_tp", "pplx", "flashinfer_megamoe"),
)
RUNNER_BACKENDS = (
    *("auto", "deep_gemm", "triton", "triton_kernel", "flashinfer_trtllm", "experimental_sgl_trtllm"),
    *("flashinfer_trtllm_routed", "flashinfer_cutlass", "flashinfer_mxfp4", "flashinfer_cutedsl"),
    *("flashinfer_megamoe", "cutlass", "aiter", "marlin", "humming", "experimental_sgl_marlin"),
    *("lora_cutedsl", "lora_triton", "lora_marlin", "hpc_ops", "megamoe", "intel_xpu"),
)

FLAGS = (
    Flag("tp_size", ("--tp-size", "--tensor-parallel-size", "--tp"), default=1),
    Flag("pp_size", ("--pp-size", "--pipeline-parallel-size"), default=1),
    Flag("dp_size", ("--dp-size", "--data-parallel-size", "--dp"), default=1),
    Flag("attn_dp_size", ("--attn-dp-size", "--attention-data-parallel-size"), default=1, low=0),
    Flag("attn_cp_size", ("--attn-cp-size", "--attention-context-parallel-size"), default=1),
    Flag("dcp_size", ("--dcp-size", "--decode-context-parallel-size"), default=1, low=0),
    Flag("ep_size", ("--ep-size", "--expert-parallel-size", "--ep"), default=1),
    Flag("moe_dp_size", ("--moe-dp-size", "--moe-data-parallel-size"), default=1),
    Flag("moe_dense_tp_size", ("--moe-dense-tp-size",)),
    Flag("dwdp_size", ("--dwdp-size",), default=1),
    # Deprecated spelling of --attn-dp-size, to go after 2026-12-31.
    Flag("enable_dp_attention", ("--enable-dp-attention",), Kind.SWITCH, False),
    Flag("enable_dp_lm_head", ("--enable-dp-lm-head",), Kind.SWITCH, False),
    # Removed: they made the expert parallel size the TP size.
    Flag("enable_ep_moe", ("--enable-ep-moe",), Kind.SWITCH, False),
    Flag("enable_deepep_moe", ("--enable-deepep-moe",), Kind.SWITCH, False),
    # The longer spelling is that of releases before 0.5.10.
    Flag(
        "enable_prefill_cp",
        ("--enable-prefill-cp", "--enable-nsa-prefill-context-parallel"),
        Kind.SWITCH,
        False,
    ),
    Flag("cp_strategy", ("--cp-strategy",), Kind.TEXT, choices=("zigzag", "interleave")),
    Flag("moe_a2a_backend", ("--moe-a2a-backend",), Kind.TEXT, "none", choices=A2A_BACKENDS),
    # The kernels of the experts' matrices; some ask for sizes of their own.
    Flag(
        "moe_runner_backend",
        ("--moe-runner-backend",),
        Kind.TEXT,
        "auto",
        choices=RUNNER_BACKENDS,
        shapes=False,
    ),
    Flag("deepep_mode", ("--deepep-mode",), Kind.TEXT, "auto"),
    Flag(
        "enable_eplb",
        ("--enable-eplb",),
        Kind.SWITCH,
        False,
        lacks="experts that move while it serves: the placement is that of the start",
    ),
    Flag("ep_num_redundant_experts", ("--ep-num-redundant-experts",), default=0, low=0),
    Flag(
        "elastic_ep_backend",
        ("--elastic-ep-backend",),
        Kind.TEXT,
        choices=("none", "mooncake", "nixl"),
        lacks="ranks that come and go while it serves",
    ),
    Flag("nnodes", ("--nnodes",), default=1),
    Flag("node_rank", ("--node-rank",), default=0, low=0, shapes=False),
    Flag("base_gpu_id", ("--base-gpu-id",), default=0, low=0, shapes=False),
    Flag("gpu_id_step", ("--gpu-id-step",), default=1, shapes=False),
    Flag("config_file", ("--config",), Kind.TEXT, shapes=False),
    model_flag("model", "--model-path", "--model"),
    model_flag("dtype", "--dtype", default="auto", choices=DTYPES),
    model_flag("kv_cache_dtype", "--kv-cache-dtype", default="auto", choices=KV_DTYPES),
    model_flag("quantization", "--quantization"),
)

EP_SPANNING_BACKENDS = (
    *("deepep", "deepep_v2", "mooncake", "nixl", "mori", "flashinfer", "flashinfer_megamoe", "megamoe"),
    *("pplx", "ascend_fuseep"),
)
"""All-to-all backends under which ep_size is silently set to tp_size (_A2A_EP_SPANNING_BACKENDS)."""
WHOLE_DP_BACKENDS = {
    "flashinfer": "Flashinfer MoE A2A is only supported",
    "flashinfer_megamoe": "FlashInfer MegaMOE is only supported",
}
"""Backends that want every rank of a stage to be an attention replica, with SGLang's words for it."""
WHOLE_EP_RUNNERS = ("flashinfer_cutlass", "flashinfer_cutedsl")

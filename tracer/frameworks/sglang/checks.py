"""What SGLang refuses, in its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.notes import Refusal
from tracer.frameworks.sglang.flags import WHOLE_DP_BACKENDS, WHOLE_EP_RUNNERS

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.frameworks.sglang.sizes import Sizes

TP, EP = "tp_size", "ep_size"


def check_sizes(request: Request, sizes: Sizes) -> None:
    """All checks, in SGLang's order of hooks."""
    settings = request.settings
    if sizes.attn_dp < 1:
        raise Refusal("attn_dp_size", f"--attn-dp-size must be positive (got {sizes.attn_dp}).")
    if sizes.attn_dp > 1 and sizes.dp > 1:
        raise Refusal(
            "dp_size",
            f"--dp-size {sizes.dp} with --attn-dp-size {sizes.attn_dp}: data-parallel replicas combined "
            "with attention data parallelism are not supported.",
        )
    _check_dwdp(request, sizes)
    _check_attention(sizes)
    _check_experts(request, sizes)
    _check_decode(request, sizes)
    _check_backends(request, sizes)
    nodes = settings.size("nnodes")
    if sizes.tp * sizes.pp % nodes:
        raise Refusal("nnodes", "tp_size must be divisible by number of nodes", mend=("nnodes", TP))
    if sizes.dp > 1 and nodes != 1:
        raise Refusal(
            "dp_size",
            "multi-node data-parallel replicas are not supported; use attention DP (--attn-dp-size) "
            "across nodes",
        )
    if sizes.dense_tp not in (None, 1, sizes.tp):
        raise Refusal("moe_dense_tp_size", "moe_dense_tp_size only supports None, 1, or tp_size currently")


def _check_dwdp(request: Request, sizes: Sizes) -> None:
    if sizes.dwdp == 1:
        return
    if sizes.dwdp != sizes.tp:
        raise Refusal(
            "dwdp_size", f"dwdp_size ({sizes.dwdp}) must equal tp_size ({sizes.tp})", mend=("dwdp_size", TP)
        )
    if request.settings.on("enable_eplb"):
        raise Refusal("enable_eplb", "EPLB dynamic migration conflicts with static DWDP partitioning")
    if sizes.pp != 1:
        raise Refusal("pp_size", "DWDP requires pp_size == 1")
    if request.experts is not None and request.experts % sizes.dwdp:
        raise Refusal(
            "dwdp_size",
            f"num_routed_experts ({request.experts}) must be divisible by dwdp_size ({sizes.dwdp})",
        )


def _check_attention(sizes: Sizes) -> None:
    if sizes.tp % sizes.attn_cp:
        raise Refusal("attn_cp_size", "tp_size must be divisible by attn_cp_size", mend=("attn_cp_size", TP))
    if sizes.tp % (sizes.attn_dp * sizes.attn_cp):
        raise Refusal(
            "attn_dp_size" if sizes.attn_dp > 1 else "attn_cp_size",
            "tp_size must be divisible by attn_dp_size * attn_cp_size "
            f"({sizes.tp} % ({sizes.attn_dp} * {sizes.attn_cp}) != 0)",
            mend=("attn_dp_size", "dp_size", "attn_cp_size", TP),
        )


def _check_experts(request: Request, sizes: Sizes) -> None:
    if sizes.moe_dp > 1:
        _check_moe_dp(sizes)
    if sizes.attn_cp != sizes.moe_dp and sizes.moe_dp != 1:
        raise Refusal(
            "moe_dp_size",
            "attn_cp_size != moe_dp_size is only supported when moe_dp_size == 1",
            mend=("moe_dp_size", "attn_cp_size"),
        )
    if sizes.tp % (sizes.ep * sizes.moe_dp):
        raise Refusal(
            EP,
            f"tp_size ({sizes.tp}) must be divisible by ep_size * moe_dp_size ({sizes.ep} * {sizes.moe_dp})",
            mend=(EP, TP),
        )
    runner = request.settings.text("moe_runner_backend")
    if runner in WHOLE_EP_RUNNERS and sizes.ep not in (1, sizes.tp):
        raise Refusal(
            EP,
            "The expert parallel size must be 1 or the same as the tensor parallel size "
            f"(--moe-runner-backend {runner})",
        )
    physical = (request.experts or 0) + request.settings.size("ep_num_redundant_experts")
    if request.experts is not None and physical % sizes.ep:
        raise Refusal(
            EP, f"num_physical_experts ({physical}) must be divisible by ep_size ({sizes.ep})", mend=(EP,)
        )


def _check_backends(request: Request, sizes: Sizes) -> None:
    """What all-to-all backends, EPLB and elastic EP ask of the sizes.

    Source: ``arg_groups/moe_hook.py`` (handle_a2a_moe), ``parallel_hook.py`` (handle_elastic_ep,
    handle_eplb_and_dispatch).
    """
    settings = request.settings
    if sizes.backend in WHOLE_DP_BACKENDS and sizes.attn_dp != sizes.tp:
        raise Refusal(
            "attn_dp_size",
            f"{WHOLE_DP_BACKENDS[sizes.backend]} with --attn-dp-size equal to --tp-size "
            f"({sizes.attn_dp} and {sizes.tp})",
            mend=("attn_dp_size", "moe_a2a_backend"),
        )
    if settings.on("enable_eplb") and sizes.ep == 1:
        raise Refusal(
            "enable_eplb",
            "EPLB needs an expert parallel size above 1 (assert ep_size > 1)",
            mend=(EP, "enable_eplb"),
        )
    if settings.text("elastic_ep_backend") not in ("", "none") and sizes.pp != 1:
        raise Refusal(
            "pp_size", "PP size should be set to 1 under elastic EP", mend=("pp_size", "elastic_ep_backend")
        )


def _check_moe_dp(sizes: Sizes) -> None:
    if sizes.tp % sizes.moe_dp:
        raise Refusal("moe_dp_size", "tp_size must be divisible by moe_dp_size", mend=("moe_dp_size", TP))
    if sizes.ep * sizes.moe_dp > sizes.tp:
        raise Refusal(
            EP, "ep_size * moe_dp_size must be less than or equal to tp_size", mend=(EP, "moe_dp_size")
        )
    if sizes.pp != 1:
        raise Refusal(
            "pp_size", "PP is not supported with context parallelism", mend=("pp_size", "moe_dp_size")
        )
    if sizes.ep > 1 and sizes.ep * sizes.moe_dp != sizes.tp:
        raise Refusal(EP, "ep_size * moe_dp_size must be equal to tp_size", mend=(EP, "moe_dp_size"))


def _check_decode(request: Request, sizes: Sizes) -> None:
    settings = request.settings
    if sizes.dcp < 1:
        raise Refusal("dcp_size", f"decode_context_parallel_size ({sizes.dcp}) must be >= 1")
    if sizes.tp % sizes.dcp:
        raise Refusal(
            "dcp_size",
            f"tensor_model_parallel_size ({sizes.tp}) must be divisible by decode_context_parallel_size "
            f"({sizes.dcp})",
            mend=("dcp_size", TP),
        )
    if sizes.dcp > 1 and settings.on("enable_prefill_cp"):
        raise Refusal(
            "dcp_size",
            "--dcp-size > 1 does not support --enable-prefill-cp.",
            mend=("enable_prefill_cp", "dcp_size"),
        )
    if settings.on("enable_prefill_cp") and not settings.has("cp_strategy"):
        raise Refusal(
            "enable_prefill_cp",
            "--cp-strategy must be set when --enable-prefill-cp is enabled.",
            mend=("cp_strategy",),
        )
    if settings.on("enable_dp_lm_head") and sizes.attn_dp == 1 and settings.has("attn_dp_size"):
        raise Refusal("enable_dp_lm_head", "--enable-dp-lm-head requires attention DP (--attn-dp-size).")

"""What TensorRT-LLM's Mapping refuses, in its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.notes import Refusal
from tracer.frameworks.tensorrt_llm.flags import CLUSTER, CP, MOE_EP, MOE_TP, PP, TP

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.frameworks.tensorrt_llm.sizes import Sizes


def check_sizes(request: Request, sizes: Sizes) -> None:
    """World, MoE product, CP with EP, and clusters."""
    gpus, settings = request.gpus, request.settings
    if gpus is not None and sizes.world > gpus:
        raise Refusal(
            TP,
            "world_size must equal to tp_size * pp_size * cp_size, but got "
            f"{gpus} != {sizes.tp} * {sizes.pp} * {sizes.cp}.",
            mend=(*(dest for dest in (TP, CP, PP) if settings.has(dest)), "gpus"),
        )
    product = sizes.moe_tp * sizes.moe_ep * sizes.cluster
    if product != sizes.moe_world:
        raise Refusal(
            MOE_EP if settings.has(MOE_EP) else MOE_TP if settings.has(MOE_TP) else CLUSTER,
            "moe_tp_size * moe_ep_size * moe_cluster_size must equal to moe_world_size, but got "
            f"{product} != {sizes.moe_world}",
            mend=(MOE_EP, MOE_TP, CLUSTER, TP),
        )
    if sizes.moe_ep != 1 and sizes.cp > 1 and sizes.cp_type not in ("HELIX", "ATTN2D"):
        raise Refusal(
            MOE_EP,
            f"CP CpType.{sizes.cp_type} doesn't support MoE tp/ep yet",
            mend=(MOE_EP, CP),
            otherwise="drop --cp_size, or use cp_type HELIX",
        )
    if sizes.cluster > 1 and sizes.moe_ep != 1:
        raise Refusal(
            CLUSTER, f"moe_cluster_size {sizes.cluster} needs moe_ep_size 1", mend=(CLUSTER, MOE_EP, MOE_TP)
        )
    if settings.on("enable_lm_head_tp_in_adp") and not sizes.attention_dp:
        raise Refusal(
            "enable_lm_head_tp_in_adp",
            "enable_lm_head_tp_in_adp requires enable_attention_dp",
            mend=("enable_attention_dp",),
        )
    _check_partition(request, sizes.pp)


def _check_partition(request: Request, pp: int) -> None:
    partition = request.settings.whole_list("pp_partition")
    if not partition:
        return
    layers = request.model.layers if request.model is not None else sum(partition)
    if len(partition) != pp or sum(partition) != layers:
        raise Refusal(
            "pp_partition",
            f"len(pp_partition)={len(partition)}, sum(pp_partition)={sum(partition)} do not match "
            f"pp_size={pp} and num_layers={layers}.",
            mend=(PP,),
            otherwise="mend the list, or drop it",
        )

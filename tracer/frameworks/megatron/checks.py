"""What Megatron refuses, in its order and its words."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.frameworks.notes import Refusal

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.grid import RankGrid

TP, PP, CP = "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"
MAX_LEVELS = 16
EP, ETP = "expert_model_parallel_size", "expert_tensor_parallel_size"


def check_sizes(request: Request, world: int, *, tp: int, pp: int, cp: int, etp: int, ep: int) -> None:
    """World over the dense product, virtual stages, then world over the expert product."""
    settings = request.settings
    _check_removed(request)
    model_size = tp * pp * cp
    if world % model_size:
        raise Refusal(
            next(dest for dest in (TP, PP, CP) if settings.has(dest)),
            f"world_size ({world}) is not divisible by {model_size}",
            mend=(*(dest for dest in (TP, CP, PP) if settings.has(dest)), "gpus"),
        )
    virtual = "virtual_pipeline_model_parallel_size"
    per_stage = "num_layers_per_virtual_pipeline_stage"
    if pp == 1 and ((settings.maybe(virtual) or 1) > 1 or settings.has(per_stage)):
        raise Refusal(
            virtual if settings.has(virtual) else per_stage,
            "pipeline-model-parallel size should be greater than 1 with interleaved schedule",
            mend=(PP,),
            otherwise=f"drop {settings.name(virtual)}",
        )
    expert_size = etp * ep * pp
    if world % expert_size:
        raise Refusal(
            EP if settings.has(EP) else ETP,
            f"world_size ({world}) is not divisible by expert_tensor_model_pipeline_parallel size "
            f"({expert_size})",
            mend=(*(() if settings.has(ETP) or tp == 1 else (ETP,)), EP, ETP, "gpus"),
        )


def _check_removed(request: Request) -> None:
    if request.settings.has("model_parallel_size"):
        raise Refusal(
            "model_parallel_size",
            "--model-parallel-size is no longer valid, use --tensor-model-parallel-size instead",
            otherwise=f"write --tensor-model-parallel-size {request.settings.get('model_parallel_size')}",
        )
    if request.settings.size("tensor_parallel_num_weight_shards") > 1:
        raise Refusal(
            "tensor_parallel_num_weight_shards",
            "its gtp_remat axis is not laid out here",
            otherwise="drop --tensor-parallel-num-weight-shards",
        )


def check_order(request: Request, order: str, sizes: dict[str, int]) -> None:
    """Every axis larger than 1 must stand in the order, once, and nothing else may."""
    names = order.split("-")
    for name in names:
        if name not in ("tp", "cp", "ep", "dp", "pp") or names.count(name) > 1:
            raise Refusal("order", f"{name!r} is not one axis of the order ({order})", otherwise=_ORDER_FIX)
    for name, size in sizes.items():
        if name not in names and size > 1:
            raise Refusal(
                "order",
                f"The size of ({name}) is ({size}), but you haven't specified the order ({order})",
                otherwise=_ORDER_FIX,
            )


_ORDER_FIX = "try --order tp-cp-ep-dp-pp"


def check_one_generator(ep: int, cp: int) -> None:
    """One RankGenerator holds EP or CP, never both: there are two of them for that."""
    if ep > 1 and cp > 1:
        raise Refusal(
            EP,
            "Both EP and CP > 1 in not allow in one rank generator. CP is only included in default "
            "RankGenerator, and EP only in expert RankGenerator.",
        )


def check_hybrid(request: Request, ranks: int) -> None:
    """Hybrid context parallelism halves DP x CP groups."""
    if request.settings.on("hybrid_context_parallel") and ranks % 2:
        raise Refusal(
            "hybrid_context_parallel",
            "Hybrid context parallel requires an even number of ranks",
            mend=(CP, TP, PP, "gpus"),
            otherwise="drop --hybrid-context-parallel",
        )


def check_pipelines(request: Request, order: str, dense: RankGrid, expert: RankGrid) -> None:
    """Orders that do not end in pp: DP must equal EDP, and both grids must give the same pp groups."""
    pp, dp, edp = dense.size_of("pp"), dense.size_of("dp"), expert.size_of("edp")
    mend = (ETP, EP, CP) if request.settings.has("order") else ("use_tp_pp_dp_mapping", ETP, EP)
    if not order.endswith("pp") and pp > 1 and dp != edp:
        raise Refusal(
            EP,
            "When not using pp-last rank ordering, the data parallel size of the attention and moe layers "
            f"must be the same, but got {dp} and {edp}",
            mend=mend,
            otherwise=_ORDER_FIX,
        )
    if pp > 1 and dense.stride_of("pp") != expert.stride_of("pp"):
        dense_groups, expert_groups = (_some_groups(grid) for grid in (dense, expert))
        raise Refusal(
            "order" if request.settings.has("order") else "use_tp_pp_dp_mapping",
            "Pipeline parallel groups are expected to be the same for Non-Expert and Expert part, but got "
            f"{dense_groups} and {expert_groups}",
            mend=mend,
            otherwise=_ORDER_FIX,
        )


def _some_groups(grid: RankGrid) -> str:
    """The pp groups as a list; the first only where there are many."""
    if grid.size > 64:
        return f"[{list(grid.group(0, 'pp')[:4])}, ...]"
    return str(grid.groups("pp").tolist())


def check_context(request: Request, cp: int) -> None:
    """The sequence must divide over CP, and the levels of hierarchical CP must multiply to it."""
    settings = request.settings
    kind = settings.text("cp_comm_type")
    if cp > 1 and kind not in ("p2p", "all_gather", "a2a", "a2a+p2p"):
        raise Refusal(
            "cp_comm_type",
            f"cp_comm_type {kind!r} is not one of p2p, all_gather, a2a and a2a+p2p",
            otherwise=f"try {settings.name('cp_comm_type')} p2p",
        )
    length = settings.maybe("seq_length")
    if length is not None and cp > 1 and length % (2 * cp):
        raise Refusal(
            CP,
            f"seq_length ({length}) should be a multiple of 2 * context_parallel_size ({2 * cp}) if "
            "context parallel is used.",
        )
    levels = settings.whole_list("hierarchical_context_parallel_sizes")
    if len(levels) > MAX_LEVELS:
        raise ConfigError(
            settings.name("hierarchical_context_parallel_sizes"),
            f"{len(levels)} sizes",
            f"are more than {MAX_LEVELS} levels",
            "give two or three",
        )
    if levels and prod(levels) != cp:
        raise Refusal(
            "hierarchical_context_parallel_sizes",
            f"the product of hierarchical_context_parallel_sizes {list(levels)} must be "
            f"context_parallel_size ({cp})",
            mend=(CP,),
            otherwise=f"give sizes that multiply to {cp}",
        )


def check_heads_over_cp(request: Request, cp: int, tp: int) -> None:
    """The all-to-all's ranks divide a TP rank's query heads and its query groups (Transformer Engine)."""
    settings, model = request.settings, request.model
    kind = settings.text("cp_comm_type")
    windows = model is not None and any(getattr(each.attention, "window", None) for each in model.layer_kinds)
    if cp > 1 and windows and kind in ("p2p", "a2a+p2p"):
        raise Refusal(
            "cp_comm_type",
            f"Transformer Engine has no sliding window attention over context parallelism by {kind}",
            mend=(CP,),
            otherwise=f"try {settings.name('cp_comm_type')} all_gather",
        )
    if cp == 1 or kind not in ("a2a", "a2a+p2p"):
        return
    levels = settings.whole_list("hierarchical_context_parallel_sizes")
    if kind == "a2a+p2p" and len(levels) != 2:
        raise Refusal(
            "hierarchical_context_parallel_sizes" if levels else "cp_comm_type",
            "a2a+p2p needs two hierarchical_context_parallel_sizes: of the all-to-all and of the ring",
            otherwise=f"give {settings.name('hierarchical_context_parallel_sizes')} 2 {max(1, cp // 2)}",
        )
    parts = cp if kind == "a2a" else levels[0]
    heads = settings.maybe("num_attention_heads") if model is None else model.heads
    groups = None if model is None or model.mla else model.kv_heads
    for what, number in (("attention heads", heads), ("query groups", groups)):
        if number is not None and number // tp % parts:
            raise Refusal(
                "cp_comm_type",
                f"the {number // tp} {what} of a TP rank must be divisible by the {parts} ranks of the "
                "context-parallel all-to-all",
                mend=(CP, TP),
                otherwise=f"try {settings.name('cp_comm_type')} p2p",
            )


def check_optimizer(request: Request, dp_cp: int, edp: int) -> None:
    """Instances of the distributed optimizer must divide DP x CP, and expert DP."""
    instances = request.settings.size("num_distributed_optimizer_instances")
    for what, size in (("Data", dp_cp), ("Expert data", edp)):
        if size % instances:
            raise Refusal(
                "num_distributed_optimizer_instances",
                f"{what} parallel size ({size}) should be divisible by partial DistOpt shard factor "
                f"({instances})",
            )

"""What DeepSpeed refuses, in its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.notes import Refusal

if TYPE_CHECKING:
    from tracer.frameworks.deepspeed.sizes import Sizes
    from tracer.frameworks.settings import Request


MAX_ZERO_STAGE = 3


def check_sizes(request: Request, sizes: Sizes) -> None:
    """World over tp·pp·sp, then the rules of the MoE path that is used."""
    settings, world = request.settings, sizes.world
    if settings.size("zero_stage") > MAX_ZERO_STAGE:
        raise Refusal(
            "zero_stage",
            f"{settings.size('zero_stage')} is no ZeroStageEnum: the stages are 0 (off), 1 (optimizer "
            "states), 2 (gradients) and 3 (weights)",
            otherwise=f"try {settings.name('zero_stage')} {MAX_ZERO_STAGE}",
        )
    model = sizes.tp * sizes.pp
    if world % model:
        raise Refusal(
            sizes.tp_dest if sizes.tp > 1 else "num_pp",
            f"{world} is not divisible by {model}",
            mend=(sizes.tp_dest, "num_pp", "gpus"),
        )
    if world % (model * sizes.sp):
        raise Refusal(
            "sequence_parallel_size",
            f"world_size ({world}) is not divisible by sequence_parallel_size {sizes.sp}",
            mend=("sequence_parallel_size", "gpus"),
        )
    given = settings.maybe("num_dp")
    if given is not None and given != sizes.dp:
        raise Refusal(
            "num_dp",
            f"{given} data parallel x {sizes.tp} model x {sizes.pp} pipe x {sizes.sp} sequence is not "
            f"{world} ranks",
            mend=("num_dp", "gpus"),
        )
    if sizes.auto_ep:
        _check_expert_slices(request)
    if sizes.folding:
        _check_folding(request, sizes)
    elif sizes.dp * sizes.sp % sizes.ep:
        rule = f"{sizes.dp * sizes.sp} is not divisible by {sizes.ep}"
        raise Refusal(sizes.ep_dest, rule, mend=(sizes.ep_dest, "gpus"))
    hpz = settings.size("zero_hpz_partition_size")
    if world % hpz:
        raise Refusal("zero_hpz_partition_size", f"world size {world} is not divisible by hpz {hpz}")


def _check_expert_slices(request: Request) -> None:
    """AutoEP keeps experts whole, with and without TP around them."""
    etp = request.settings.size("expert_tensor_parallel_size")
    if etp > 1:
        raise Refusal(
            "expert_tensor_parallel_size",
            f"expert_parallel.expert_tensor_parallel_size={etp} is reserved for expert-internal tensor "
            "parallelism and is not supported yet. Use expert_tensor_parallel_size=1; ETP support is planned "
            "as follow-up work.",
        )


def _check_folding(request: Request, sizes: Sizes) -> None:
    settings = request.settings
    if sizes.pp > 1:
        raise Refusal(
            "num_pp",
            f"AutoEP+AutoTP folding currently supports pp_size=1 only; got pp_size={sizes.pp}. "
            "Pipeline-parallel validation is planned separately.",
        )
    if settings.on("use_data_before_expert_parallelism"):
        raise Refusal(
            "use_data_before_expert_parallelism",
            "expert_parallel with use_data_before_expert_parallel_ is not supported with AutoEP+AutoTP "
            "folding. Disable use_data_before_expert_parallel_.",
        )
    if sizes.sp > 1:
        raise Refusal(
            "sequence_parallel_size", "AutoEP+AutoTP folding does not support Ulysses sequence parallelism"
        )
    if sizes.ep <= 1:
        raise Refusal(
            "autoep_size",
            "AutoEP+AutoTP folding requires expert_parallel.autoep_size > 1. The ep=1 local-computation path "
            "would duplicate routed-token gradients across TP lanes.",
        )
    if sizes.world % sizes.ep:
        raise Refusal(
            "autoep_size",
            f"the stage's {sizes.world} ranks must be divisible by ep*etp ({sizes.ep})",
            mend=("autoep_size", "gpus"),
        )

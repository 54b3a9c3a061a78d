"""What Accelerate's ParallelismConfig refuses, in its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.notes import Refusal

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request

REPLICATE, SHARD, TP, CP, SP = "dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "sp_size"


def check_sizes(request: Request, world: int) -> None:
    """CP and SP exclude each other, TP and CP need sharding beside replicas, sizes multiply to the world."""
    settings = request.settings
    if settings.on("use_megatron_lm") or settings.text("distributed_type") == "MEGATRON_LM":
        raise Refusal(
            "use_megatron_lm",
            "Megatron-LM lays the ranks out, by its own flags",
            mend=("config_file",),  # no other value helps: the fix is another framework
            otherwise="give them: tokentrip from megatron -- --tensor-model-parallel-size 2 ...",
        )
    replicate, shard, tp, cp, sp = (settings.size(dest) for dest in (REPLICATE, SHARD, TP, CP, SP))
    if cp > 1 and sp > 1:
        raise Refusal(
            SP,
            "Context Parallelism (CP) and Sequence Parallelism (SP) are mutually exclusive. Got "
            f"cp_size={cp} and sp_size={sp}. Please set either cp_size=1 or sp_size=1.",
            mend=(SP, CP),
        )
    if (tp > 1 or cp > 1) and replicate > 1 and shard == 1:
        raise Refusal(
            REPLICATE,
            "Tensor/Context parallelism (tp/cp_size > 1) cannot be used with pure data parallelism "
            "(dp_replicate_size > 1 and dp_shard_size == 1).",
            mend=(REPLICATE, SHARD),
        )
    total = replicate * shard * tp * cp * sp
    if sp > 1:  # DeepSpeed lays the sequence groups out; data parallelism is what is left over.
        if world % sp:
            raise Refusal(SP, f"world_size ({world}) is not divisible by sequence_parallel_size {sp}")
    elif total not in (1, world):
        given = tuple(dest for dest in (SHARD, REPLICATE, TP, CP) if settings.has(dest))
        raise Refusal(
            given[0],
            f"ParallelismConfig total_size ({total}) does not match num_processes ({world}). Please adjust "
            "dp_replicate_size/dp_shard_size/tp_size/cp_size/sp_size.",
            mend=(*given, "gpus"),
        )
    sharded = settings.on("use_fsdp") or settings.text("distributed_type") == "FSDP"
    if sharded and total > 1 and shard == 1 and cp == 1:
        raise Refusal(
            SHARD,
            "FSDP is enabled but the parallelism config has no dimension for FSDP to shard across (both "
            "`dp_shard_size` and `cp_size` are 1).",
            mend=(SHARD, TP),
        )

"""DeepSpeed's settings that shape the mesh.

Most live in the JSON file or in Python (MoE(ep_size=...), PipeModelDataParallelTopology(num_pp, num_mp,
num_dp)); the flags here are the names users' scripts and Megatron-DeepSpeed give them.
"""

from tracer.frameworks.flags import Flag, Kind, model_flag

FLAGS = (
    Flag(
        "autotp_size",
        ("--autotp-size", "--tensor-parallel.autotp-size"),
        low=0,
        default=0,
        keys=("tensor_parallel.autotp_size",),
    ),
    Flag(
        "num_mp",
        ("--num-mp", "--tensor-model-parallel-size", "--model-parallel-size", "--tp-size", "--tp"),
        default=1,
    ),
    Flag(
        "num_pp",
        (
            "--num-pp",
            "--num-stages",
            "--pipeline-model-parallel-size",
            "--pipe-parallel-size",
            "--pp-size",
            "--pp",
        ),
        default=1,
        keys=("pipeline.stages",),
    ),
    Flag("num_dp", ("--num-dp", "--data-parallel-size"), keys=("data_parallel_size",)),
    Flag("ep_size", ("--ep-size", "--moe-expert-parallel-size", "--expert-parallel-size", "--ep"), default=1),
    Flag("num_experts", ("--num-experts",)),
    Flag(
        "autoep_size",
        ("--autoep-size", "--expert-parallel.autoep-size"),
        keys=("expert_parallel.autoep_size",),
    ),
    Flag("autoep_enabled", ("--autoep",), Kind.ON_OFF, keys=("expert_parallel.enabled",)),
    Flag(
        "expert_tensor_parallel_size",
        ("--expert-tensor-parallel-size", "--expert-parallel.expert-tensor-parallel-size"),
        default=1,
        keys=("expert_parallel.expert_tensor_parallel_size",),
        lacks="slices of experts: DeepSpeed reads this size with AutoEP alone",
    ),
    Flag("enable_expert_tensor_parallelism", ("--enable-expert-tensor-parallelism",), Kind.ON_OFF, False),
    Flag(
        "use_data_before_expert_parallelism",
        ("--use-data-before-expert-parallelism",),
        Kind.ON_OFF,
        False,
        keys=("use_data_before_expert_parallelism",),
    ),
    Flag(
        "sequence_parallel_size",
        ("--sequence-parallel-size", "--ds-sequence-parallel-size"),
        default=1,
        keys=("sequence_parallel_size",),
    ),
    Flag("zero_stage", ("--zero-stage",), default=0, low=0, keys=("zero_optimization.stage",)),
    Flag(
        "zero_hpz_partition_size",
        ("--zero-hpz-partition-size",),
        default=1,
        keys=("zero_optimization.zero_hpz_partition_size",),
    ),
    Flag(  # a count of parameters, or auto
        "stage3_prefetch_bucket_size",
        ("--stage3-prefetch-bucket-size",),
        Kind.TEXT,
        keys=(
            "zero_optimization.stage3_prefetch_bucket_size",
            "zero_optimization.prefetch_bucket_size",
        ),
    ),
    Flag("config_file", ("--deepspeed-config", "--deepspeed"), Kind.FILE, shapes=False),
    model_flag("model", "--model-name-or-path"),
)

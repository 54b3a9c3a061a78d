"""Accelerate's settings that shape the mesh: the sizes of its ``parallelism_config``."""

from tracer.frameworks.flags import Flag, Kind, model_flag


def _size(name: str) -> Flag:
    """A size of the parallelism config, as a flag, in its file and as the class calls it."""
    long = f"parallelism_config_{name}"
    return Flag(name, (f"--{long.replace('_', '-')}",), default=1, keys=(f"parallelism_config.{long}", long))


FLAGS = (
    _size("dp_replicate_size"),
    _size("dp_shard_size"),
    _size("tp_size"),
    _size("cp_size"),
    _size("sp_size"),
    Flag("num_processes", ("--num-processes",), shapes=False),
    Flag("num_machines", ("--num-machines",), default=1, shapes=False),
    Flag("distributed_type", ("--distributed-type",), Kind.TEXT),
    Flag("use_fsdp", ("--use-fsdp",), Kind.ON_OFF, False),
    Flag("use_megatron_lm", ("--use-megatron-lm",), Kind.ON_OFF, False),
    Flag(
        "cp_comm_strategy",
        ("--parallelism-config-cp-comm-strategy",),
        Kind.TEXT,
        "allgather",
        choices=("allgather", "alltoall"),
        keys=("parallelism_config.parallelism_config_cp_comm_strategy",),
    ),
    Flag("machine_rank", ("--machine-rank",), default=0, low=0, shapes=False),
    Flag("config_file", ("--config-file",), Kind.TEXT, shapes=False),
    model_flag("model", "--model-name-or-path"),
)

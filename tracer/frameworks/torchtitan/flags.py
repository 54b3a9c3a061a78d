"""torchtitan's keys that shape the mesh, as ``--parallelism.key`` and in the ``[parallelism]`` table."""

from tracer.frameworks.flags import Flag, Kind, model_flag


def _key(name: str, kind: Kind = Kind.INT, default: object = 1, low: int = 0, shapes: bool = True) -> Flag:
    """A key of the parallelism section; tyro takes ``-`` for ``_``."""
    spellings = (f"--parallelism.{name}", f"--parallelism.{name.replace('_', '-')}")
    return Flag(name, spellings, kind, default, low=low, keys=(f"parallelism.{name}",), shapes=shapes)


FLAGS = (
    _key("data_parallel_replicate_degree"),
    _key("data_parallel_shard_degree", default=-1, low=-1),
    _key("tensor_parallel_degree"),
    _key("context_parallel_degree"),
    _key("pipeline_parallel_degree"),
    _key("expert_parallel_degree"),
    # Removed by PR #3167 (2026-04).
    _key("expert_tensor_parallel_degree", default=None),
    _key("enable_sequence_parallel", Kind.ON_OFF, True),
    _key("fsdp_reshard_after_forward", Kind.TEXT, "default"),
    # How the same exchanges are written in PyTorch.
    _key("spmd_backend", Kind.TEXT, "spmd_types", shapes=False),
    _key("context_parallel_load_balancer", Kind.TEXT, "headtail"),
    _key("context_parallel_rotate_method", Kind.TEXT, "allgather"),
    _key("pipeline_parallel_schedule", Kind.TEXT, "1F1B"),
    _key("pipeline_parallel_layers_per_stage", default=None, low=1),
    _key("pipeline_parallel_first_stage_less_layers"),
    _key("pipeline_parallel_last_stage_less_layers"),
    _key("module_fqns_per_model_part", Kind.LISTS, None),
    Flag("config_file", ("--job.config_file", "--job.config-file"), Kind.TEXT, shapes=False),
    model_flag("model", "--model.name", keys=("model.name",)),
    model_flag("model_flavor", "--model.flavor", keys=("model.flavor",)),
)

"""MaxText's keys that shape the mesh, given as ``key=value`` or in its YAML file."""

from tracer.frameworks.flags import Flag, Kind, model_flag

AXES = (
    "diloco", "data", "pipeline", "fsdp", "fsdp_transpose", "context", "context_usp_ulysses",
    "context_autoregressive", "tensor", "tensor_sequence", "expert", "autoregressive",
)  # fmt: skip
"""``mesh_axes`` of base.yml, slowest first; the axis ``stage`` is called pipeline in the keys."""


def _axis(level: str, name: str) -> Flag:
    """A size of one axis; -1 takes what is left over."""
    rest = (level, name) in (("ici", "fsdp"), ("dcn", "data"))
    key = f"{level}_{name}_parallelism"
    return Flag(key, (f"--{key.replace('_', '-')}",), default=-1 if rest else 1, low=-1)


FLAGS = (
    *(_axis(level, name) for level in ("ici", "dcn") for name in AXES),
    Flag("num_slices", ("--num-slices",), low=-1),
    Flag("num_experts", ("--num-experts",)),
    Flag("custom_mesh_and_rule", ("--custom-mesh-and-rule",), Kind.TEXT),
    Flag("hardware", ("--hardware",), Kind.TEXT, "tpu", shapes=False),
    model_flag("model", "--model-name", keys=("model_name",)),
)

"""nanotron's keys that shape the mesh: the ``parallelism`` section of its YAML file."""

from tracer.frameworks.flags import Flag, Kind


def _key(name: str, *short: str, kind: Kind = Kind.INT, default: object = 1) -> Flag:
    """A key of the parallelism section; the flags are only a way to type it."""
    spellings = (f"--parallelism.{name}", *(f"--{word}" for word in (name.replace("_", "-"), *short)))
    return Flag(name, spellings, kind, default, keys=(f"parallelism.{name}",))


FLAGS = (
    _key("dp", default=None),
    _key("pp"),
    _key("tp"),
    _key("context_parallel_size", "cp"),
    _key("expert_parallel_size", "ep"),
    _key("tp_mode", kind=Kind.TEXT, default="ALL_REDUCE"),
    Flag("config_file", ("--config-file",), Kind.TEXT, shapes=False),
)

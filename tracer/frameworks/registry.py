"""The frameworks by name; each loads when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, nearest

if TYPE_CHECKING:
    from tracer.frameworks.settings import Framework

FRAMEWORKS = (
    "megatron",
    "vllm",
    "sglang",
    "tensorrt-llm",
    "torchtitan",
    "deepspeed",
    "nanotron",
    "accelerate",
    "maxtext",
)
_ALIASES = {
    "megatron-lm": "megatron",
    "megatron-core": "megatron",
    "megatronlm": "megatron",
    "mcore": "megatron",
    "trtllm": "tensorrt-llm",
    "trt-llm": "tensorrt-llm",
    "tensorrtllm": "tensorrt-llm",
    "trt": "tensorrt-llm",
    "titan": "torchtitan",
    "hf-accelerate": "accelerate",
}


def framework_name(name: object) -> str | None:
    """The name of a framework that a word stands for, or None."""
    if not isinstance(name, str):
        return None
    plain = name.strip().lower().replace("_", "-")
    plain = _ALIASES.get(plain, plain)
    return plain if plain in FRAMEWORKS else None


def framework(name: object) -> Framework:
    """A framework by its name or a usual short form.

    Raises:
        ConfigError: when there is none of that name.
    """
    known = framework_name(name)
    if known is None:
        fix = nearest(str(name)[:80].lower(), [*FRAMEWORKS, *_ALIASES])
        raise ConfigError("framework", name, "is not a framework whose flags are read here", fix)
    module = import_module(f"tracer.frameworks.{known.replace('-', '_')}")
    found: Framework = module.FRAMEWORK
    return found

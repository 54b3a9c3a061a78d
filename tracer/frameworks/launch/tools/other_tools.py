"""Tools whose files are recognised and not read: said by name, with what is missing and how to give it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.errors import ConfigError

_MARKS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "Axolotl": (("base_model", "datasets"), ("base_model", "sequence_len"), ("base_model", "adapter")),
    "LLaMA-Factory": (
        ("model_name_or_path", "finetuning_type"), ("model_name_or_path", "stage", "template"),
        ("model_name_or_path", "template"), ("dist_config.name", "model"),
    ),
    "TRL": (("model_name_or_path", "output_dir"),),
    "torchtune": (("model._component_", "optimizer._component_"),),
    "LitGPT": (("checkpoint_dir", "devices"),),
    "NeMo AutoModel": (("distributed._target_", "model._target_"), ("recipe", "model._target_")),
}  # fmt: skip
"""Keys that the files of a tool have together, by the tool."""
TOOL_COMMANDS = {
    "axolotl": "Axolotl", "llamafactory-cli": "LLaMA-Factory", "llamafactory": "LLaMA-Factory", "trl": "TRL",
    "tune": "torchtune", "litgpt": "LitGPT", "automodel": "NeMo AutoModel", "swift": "ms-swift",
}  # fmt: skip
"""Commands of tools that take their sizes from a file or from defaults of their own."""


def check_tool(keys: Sequence[str], tables: Mapping[str, object], name: str) -> None:
    """Refuse a file of a tool that is recognised and not read.

    Raises:
        ConfigError: naming the tool, and how to give the sizes.
    """
    there = {key.replace("-", "_") for key in keys} | {str(key) for key in tables}
    part = tables.get("_target_")
    if isinstance(part, str) and part.startswith("verl."):
        raise ConfigError(
            name, part, "is a part of a verl configuration, which other parts complete",
            "give the whole of it, or the launch line with its overrides",
        )  # fmt: skip
    for tool, marks in _MARKS.items():
        found = next((mark for mark in marks if there.issuperset(mark)), None)
        if found is not None:
            raise tool_error(tool, name, f"keys {', '.join(found)}")


def tool_error(tool: str, name: str, got: str) -> ConfigError:
    """What is said of a tool whose settings are not read."""
    return ConfigError(
        name,
        got,
        f"is recognised as {tool}, whose own settings are not read: they set the sizes",
        "give its sizes to the framework below it, such as tokentrip from accelerate -- --num_processes 8 "
        "--parallelism_config_tp_size 2",
    )

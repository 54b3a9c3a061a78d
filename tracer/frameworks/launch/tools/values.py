"""Dotted keys of a tool's settings: Megatron's sizes below a prefix, counts, the model's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tracer.errors import ConfigError
from tracer.frameworks.launch.result import Process
from tracer.frameworks.launchers import Counts, whole
from tracer.frameworks.unread import Unread

Values = Mapping[str, object]
MEGATRON_KEYS = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
    "expert_model_parallel_size", "expert_tensor_parallel_size", "virtual_pipeline_model_parallel_size",
    "sequence_parallel", "num_layers_per_virtual_pipeline_stage", "moe_token_dispatcher_type",
    "use_tp_pp_dp_mapping", "hierarchical_context_parallel_sizes", "num_distributed_optimizer_instances",
    "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers", "cp_comm_type",
    "num_moe_experts", "num_layers", "hidden_size", "num_attention_heads", "ffn_hidden_size",
    "moe_ffn_hidden_size", "moe_router_topk", "pipeline_model_parallel_layout",
    "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split",
    "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage",
)  # fmt: skip
RENAMED = {
    "num_moe_experts": "num_experts",
    "num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
}
"""Names of Megatron's ``TransformerConfig`` whose flag is spelled otherwise."""


def megatron_below(values: Values, *prefixes: str) -> dict[str, object]:
    """Megatron's settings under the first of these prefixes that has one."""
    for prefix in prefixes:
        found: dict[str, object] = {}
        for place in (prefix, f"{prefix}override_transformer_config."):
            found |= {
                RENAMED.get(name, name): values[place + name]
                for name in MEGATRON_KEYS
                if values.get(place + name) not in (None, "null", "None")
            }
        if found:
            return found
    return {}


def count_of(values: Values, *keys: str) -> tuple[int | None, Unread | None]:
    """A count under the first of these keys that is given; or the word that would give it."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, Unread):
            return None, value
        number = whole(str(value)) if value is not None and not isinstance(value, bool) else None
        if number is not None:
            return number, None
    return None, None


def counts_of(values: Values, counts: Counts, nodes: tuple[str, ...], per_node: tuple[str, ...]) -> Counts:
    """Counts of a tool's own keys, which win over a launcher's."""
    found, ask = count_of(values, *nodes)
    per, ask_per = count_of(values, *per_node)
    if per is None and ask_per is None:
        return counts.changed(nodes=found)
    asks = {key: word for key, word in ((nodes[0], ask), (per_node[0], ask_per)) if word is not None}
    return Counts(1 if found is None and ask is None else found, per, None, per, asks or None)


def is_on(value: object) -> bool:
    """Whether a switch of a file or an override is on."""
    return str(value).lower() in ("true", "1", "yes", "on")


def model_of(values: Values, *keys: str) -> str:
    """The model's name under the first of these keys that is given."""
    return next((value for key in keys if isinstance(value := values.get(key), str)), "")


def nothing_shapes(title: str, example: str, values: Values) -> ConfigError:
    """What is said of a tool none of whose keys shapes a mesh, with an override that would."""
    shown = ", ".join(list(values)[:4]) or "no override"
    return ConfigError(
        "flags",
        shown,
        f"is recognised as {title}, but no key that shapes a mesh is among them: a recipe or a file decides",
        f"add the overrides, such as {example}",
    )


def distinct(processes: list[Process]) -> list[Process]:
    """Roles with the same settings as one of the same framework before them say nothing new."""
    found: list[Process] = []
    for process in processes:
        same = next(
            (one for one in found if (one.framework, one.tables) == (process.framework, process.tables)), None
        )
        if same is None:
            found.append(process)
        else:
            found[found.index(same)] = replace(same, role=f"{same.role} and {process.role}")
    return found

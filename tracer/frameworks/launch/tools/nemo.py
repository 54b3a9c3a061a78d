"""NeMo, Megatron-Bridge and NeMo-RL: their overrides as Megatron-LM's and vLLM's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tracer.frameworks.launch.result import Process
from tracer.frameworks.launch.tools.values import (
    MEGATRON_KEYS,
    Values,
    count_of,
    counts_of,
    is_on,
    megatron_below,
    model_of,
    nothing_shapes,
)
from tracer.frameworks.launchers import Counts
from tracer.frameworks.notes import Note
from tracer.frameworks.unread import Unread


def read_nemo(values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    """NeMo and Megatron-Bridge: ``model.tensor_model_parallel_size=4``, ``trainer.devices=8``.

    Raises:
        ConfigError: when no key that shapes a mesh is among them.
    """
    prefixes = dict.fromkeys(
        key[: -len(name)] for key in values for name in MEGATRON_KEYS[:5] if key.endswith(name)
    )
    shaping: dict[str, object] = {}
    for prefix in reversed(list(prefixes)):
        shaping |= megatron_below(values, prefix)
    if not shaping:
        raise nothing_shapes("NeMo", "model.tensor_model_parallel_size=4", values)
    counted = counts_of(
        values,
        counts,
        ("trainer.num_nodes", "num_nodes"),
        ("trainer.devices", "num_gpus_per_node", "gpus_per_node"),
    )
    model = model_of(values, "model.hf_model", "model.hf_model_id", "recipe", "model.name", "model_name")
    return [Process("megatron", (), env, counted, "NeMo", tables=shaping, adapter="nemo", model=model)]


def read_nemo_rl(values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    """NeMo-RL: a policy by Megatron or DTensor, and generation by vLLM, on ``cluster.num_nodes`` nodes.

    Of ``policy.megatron_cfg`` and ``policy.dtensor_cfg`` the one that is ``enabled`` trains. Experts are not
    sliced where ``expert_tensor_parallel_size`` is not given: every base configuration sets it to 1
    (NVIDIA-NeMo/RL 00294d9b, ``examples/configs``).

    Raises:
        ConfigError: when no key that shapes a mesh is among them.
    """
    whole = _cluster(values, counts)
    policy, generation = _shared(values, whole)
    found: list[Process] = []
    notes: tuple[Note, ...] = ()
    shaping = megatron_below(values, "policy.megatron_cfg.") if _enabled(values, "megatron") else {}
    if shaping:
        if "expert_tensor_parallel_size" not in shaping:
            shaping["expert_tensor_parallel_size"] = 1
            message = (
                "expert_tensor_parallel_size is not given: 1 is taken, as in NeMo-RL's own configurations"
            )
            notes = (Note("tool_defaults", message, "give it to change it"),)
        found.append(
            Process("megatron", (), env, policy, "NeMo-RL", "policy", shaping, adapter="nemo-rl", notes=notes)
        )
    prefix = "policy.dtensor_cfg."
    sizes = [values.get(f"{prefix}{name}_parallel_size") for name in ("tensor", "context")]
    if not shaping and _enabled(values, "dtensor") and any(size is not None for size in sizes):
        tables = {"tensor_parallel_degree": sizes[0] or 1, "context_parallel_degree": sizes[1] or 1}
        experts, _ = count_of(values, f"{prefix}expert_parallel_size")
        if experts and experts > 1:
            message = (
                f"{prefix}expert_parallel_size {experts} is not modelled: the trip lacks experts over ranks"
            )
            notes = (Note("not_modelled", message, "the groups hold; --strict refuses it"),)
        found.append(
            Process(
                "torchtitan", (), env, policy, "NeMo-RL", "policy", tables, adapter="nemo-rl", notes=notes
            )
        )
    found += _generation(values, generation, env)
    if not found:
        raise nothing_shapes("NeMo-RL", "policy.megatron_cfg.tensor_model_parallel_size=4", values)
    model = model_of(values, "policy.model_name")
    return [replace(each, model=model) for each in found]


def _enabled(values: Values, kind: str) -> bool:
    """Whether a policy's way to train is on; the only one that is given is, unless it says otherwise."""
    own = values.get(f"policy.{kind}_cfg.enabled")
    if own is not None:
        return is_on(own)
    other = "dtensor" if kind == "megatron" else "megatron"
    return not is_on(values.get(f"policy.{other}_cfg.enabled", False))


def _cluster(values: Values, counts: Counts) -> Counts:
    """GPUs of the cluster; nodes that only a base configuration gives are asked for."""
    found = counts_of(values, counts, ("cluster.num_nodes",), ("cluster.gpus_per_node",))
    if "cluster.num_nodes" in values or not ("defaults" in values or "config_name" in values):
        return found
    return replace(found, nodes=None, asks={**(found.asks or {}), "cluster.num_nodes": Unread("")})


def _shared(values: Values, whole: Counts) -> tuple[Counts, Counts]:
    """GPUs of the policy and of generation: the same ones, unless generation has its own."""
    prefix = "policy.generation.colocated."
    if is_on(values.get(f"{prefix}enabled", True)) or whole.nodes is None or whole.per_node is None:
        return whole, whole
    nodes, _ = count_of(values, f"{prefix}resources.num_nodes")
    per, _ = count_of(values, f"{prefix}resources.gpus_per_node")
    if whole.nodes == 1 and per:
        return replace(whole, per_node=whole.per_node - per), replace(whole, per_node=per)
    if not nodes:
        return whole, whole
    return replace(whole, nodes=whole.nodes - nodes), replace(whole, nodes=nodes)


def _generation(values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    prefix = "policy.generation.vllm_cfg."
    names = ("tensor_parallel_size", "pipeline_parallel_size")
    tables: dict[str, object] = {name: values[prefix + name] for name in names if prefix + name in values}
    if not tables:
        return []
    experts, _ = count_of(values, f"{prefix}expert_parallel_size")
    tp, _ = count_of(values, f"{prefix}tensor_parallel_size")
    if experts and experts > 1:
        tables |= {"data_parallel_size": max(1, experts // (tp or 1)), "enable_expert_parallel": True}
    tables["distributed_executor_backend"] = "external_launcher"
    return [Process("vllm", (), env, counts, "NeMo-RL", "generation", tables, adapter="nemo-rl")]

"""verl: an actor and its rollout over the same GPUs, each with a mesh of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tracer.errors import ConfigError
from tracer.frameworks.launch.result import Process
from tracer.frameworks.launch.tools.values import (
    Values,
    count_of,
    counts_of,
    distinct,
    megatron_below,
    model_of,
    nothing_shapes,
)
from tracer.frameworks.launchers import Counts
from tracer.frameworks.notes import Note
from tracer.frameworks.unread import unread_error

ROOT = "actor_rollout_ref."
_DEFAULTS: Values = {"sequence_parallel": True, "moe_token_dispatcher_type": "alltoall"}
"""verl's own defaults, of ``verl/trainer/config/engine/megatron.yaml`` (read at 0b8f32c7)."""
_ROLLOUT_TP = 2
"""The TP size of a rollout that nothing sets, of ``verl/trainer/config/rollout/rollout.yaml``."""
_TITAN = {
    "data_parallel_replicate_size": "data_parallel_replicate_degree",
    "data_parallel_shard_size": "data_parallel_shard_degree",
    "tensor_parallel_size": "tensor_parallel_degree",
    "pipeline_parallel_size": "pipeline_parallel_degree",
    "context_parallel_size": "context_parallel_degree",
    "expert_parallel_size": "expert_parallel_degree",
}


def read_verl(values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    """verl: the actor (Megatron, FSDP or torchtitan) and its rollout (vLLM or SGLang) over the same GPUs.

    Sources: ``verl/trainer/config`` of verl 0.8.0: ``trainer.nnodes`` (1) and ``trainer.n_gpus_per_node``;
    the reference model's sizes are the actor's where they are not given; FSDP meshes ``(ddp, fsdp)`` and
    ``(dp, sp)``, the last fastest; a rollout's engines of ``tensor_model_parallel_size`` ranks each; and
    ``rollout.nnodes`` where the rollout has nodes of its own.

    Raises:
        ConfigError: for an engine that is not read, a size that does not divide, or a value that is missing.
    """
    counted = counts_of(values, counts, ("trainer.nnodes",), ("trainer.n_gpus_per_node",))
    engine = _engine(values)
    found: list[Process] = []
    if engine == "torchtitan":
        found += _titan(values, counted, env)
    elif engine not in ("megatron", "fsdp"):
        raise ConfigError(
            f"{ROOT}actor.strategy", engine, "is an engine of verl that is not read",
            "give its sizes as those of FSDP or Megatron: actor_rollout_ref.actor.strategy=fsdp, or megatron",
        )  # fmt: skip
    for role, prefix in (("actor", f"{ROOT}actor."), ("ref", f"{ROOT}ref."), ("critic", "critic."),
                         ("critic", "critic.model.")):  # fmt: skip
        if engine != "megatron":
            continue
        shaping = megatron_below(values, f"{prefix}megatron.", f"{prefix}engine.")
        if role == "ref" and shaping:
            shaping = {**megatron_below(values, f"{ROOT}actor.megatron."), **shaping}
        if shaping:
            tables = {**_DEFAULTS, **shaping}
            found.append(Process("megatron", (), env, counted, "verl", role, tables, adapter="verl"))
    sized = counted.gpus is not None or any(key.startswith(f"{ROOT}rollout.") for key in values)
    if engine == "megatron" and not any("actor" in each.role for each in found) and _said(values) and sized:
        found.insert(0, Process("megatron", (), env, counted, "verl", "actor", _DEFAULTS, adapter="verl"))
    if engine == "fsdp":
        found += _fsdp(values, f"{ROOT}actor.", counted, env)
    rollout = _rollout(values, f"{ROOT}rollout.", _rollout_counts(values, counted), env, bool(found))
    if not found and not rollout:
        raise nothing_shapes("verl", f"{ROOT}rollout.tensor_model_parallel_size=2", values)
    model = model_of(values, f"{ROOT}model.path")
    return distinct([replace(each, model=model) for each in (*found, *rollout)])


def _said(values: Values) -> bool:
    return "model_engine" in values or f"{ROOT}actor.strategy" in values or "config_name" in values


def _engine(values: Values) -> str:
    """What trains: ``model_engine``, the actor's strategy, the configuration's name, or the sizes given."""
    said = str(values.get(f"{ROOT}actor.strategy") or values.get("model_engine") or "")
    if not said:
        name = str(values.get("config_name", ""))
        said = next((each for each in ("megatron", "torchtitan", "veomni") if each in name), "")
    if not said and megatron_below(
        values, f"{ROOT}actor.megatron.", f"{ROOT}actor.engine.", "critic.megatron."
    ):
        said = "megatron"
    return {"": "fsdp", "dp": "fsdp", "fsdp2": "fsdp"}.get(said, said)


def _titan(values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    prefix = f"{ROOT}actor.torchtitan."
    tables = {ours: values[prefix + name] for name, ours in _TITAN.items() if prefix + name in values}
    if not tables:
        return []
    return [Process("torchtitan", (), env, counts, "verl", "actor", tables, adapter="verl")]


def _fsdp(values: Values, prefix: str, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    keys = [f"{prefix}ulysses_sequence_parallel_size", f"{prefix}fsdp_config.fsdp_size"]
    if not (any(key in values for key in keys) or any(key.startswith(prefix) for key in values)):
        return []
    sp, sp_ask = count_of(values, keys[0], f"{prefix}fsdp_config.ulysses_sequence_parallel_size")
    shard, shard_ask = count_of(values, keys[1])
    for ask in (sp_ask, shard_ask):
        if ask is not None:
            raise unread_error(keys[0], ask)
    if counts.gpus is None:
        return [Process("accelerate", (), env, counts, "verl", "actor", {"sp_size": sp or 1}, adapter="verl")]
    sp, world = sp or 1, counts.gpus
    shard = world if shard is None or shard >= world else shard
    if world % shard or shard % sp:
        raise ConfigError(
            keys[1],
            shard,
            f"must divide the {world} GPUs, and the {sp} Ulysses ranks must divide it",
            f"try {world}",
        )
    tables = {"dp_replicate_size": world // shard, "dp_shard_size": shard // sp, "sp_size": sp}
    return [Process("accelerate", (), env, counts, "verl", "actor", tables, adapter="verl")]


def _rollout_counts(values: Values, trainer: Counts) -> Counts:
    """Nodes of the rollout alone, where it has any (one step off policy, fully asynchronous)."""
    nodes, _ = count_of(values, "rollout.nnodes", f"{ROOT}rollout.nnodes")
    if not nodes:
        return trainer
    own = ("rollout.n_gpus_per_node", f"{ROOT}rollout.n_gpus_per_node", "trainer.n_gpus_per_node")
    return counts_of(values, Counts(), ("rollout.nnodes", f"{ROOT}rollout.nnodes"), own)


def _rollout(
    values: Values, prefix: str, counts: Counts, env: Mapping[str, str], trains: bool
) -> list[Process]:
    names = {
        "tensor_model_parallel_size": "tensor_parallel_size", "data_parallel_size": "data_parallel_size",
        "pipeline_model_parallel_size": "pipeline_parallel_size",
    }  # fmt: skip
    given = {ours: values[prefix + name] for name, ours in names.items() if prefix + name in values}
    if not given and not (trains and any(key.startswith(prefix) for key in values)):
        return []
    notes: tuple[Note, ...] = ()
    if "tensor_parallel_size" not in given:
        given["tensor_parallel_size"] = _ROLLOUT_TP
        message = (
            f"{prefix}tensor_model_parallel_size is not given: verl's own default, {_ROLLOUT_TP}, is taken"
        )
        notes = (Note("tool_defaults", message, "give it to change it"),)
    engine = str(values.get(f"{prefix}name", "vllm")).replace("???", "vllm")
    expert = values.get(f"{prefix}expert_parallel_size")
    if engine == "sglang":
        tables: dict[str, object] = {
            "tp_size": given.get("tensor_parallel_size", 1),
            "pp_size": given.get("pipeline_parallel_size", 1),
        }  # fmt: skip
        if str(given.get("data_parallel_size", "1")) != "1":
            raise ConfigError(
                f"{prefix}data_parallel_size",
                given["data_parallel_size"],
                "is not read for a rollout by SGLang",
                "read the server's own line: tokentrip from sglang -- --tp-size ... --attn-dp-size ...",
            )
        tables |= {"ep_size": expert} if expert is not None else {}
        engines = _engines(counts, tables["tp_size"], tables["pp_size"])
        tables |= {"dp_size": engines} if engines > 1 else {}
        return [Process("sglang", (), env, counts, "verl", "rollout", tables, adapter="verl", notes=notes)]
    if engine == "trtllm":
        tables = {
            key: value
            for key, value in given.items()
            if key in ("tensor_parallel_size", "pipeline_parallel_size")
        }
        tables |= {"moe_expert_parallel_size": expert} if expert is not None and str(expert) != "1" else {}
        engines = _engines(counts, given["tensor_parallel_size"], given.get("pipeline_parallel_size", 1))
        if engines > 1:
            message = f"the rollout has {engines} engines side by side; this is the mesh of one"
            notes = (*notes, Note("one_of_several", message, "the others are its copies"))
        return [
            Process("tensorrt-llm", (), env, Counts(), "verl", "rollout", tables, adapter="verl", notes=notes)
        ]
    if engine not in ("vllm", "vllm_omni"):
        raise ConfigError(
            f"{prefix}name", engine, "is a rollout of verl that is not read", "use vllm, sglang or trtllm"
        )
    tables = dict(given)
    if expert is not None and str(expert) != "1":
        tables["enable_expert_parallel"] = True
    tables["distributed_executor_backend"] = "external_launcher"
    return [Process("vllm", (), env, counts, "verl", "rollout", tables, adapter="verl", notes=notes)]


def _engines(counts: Counts, *sizes: object) -> int:
    """How many engines of these sizes the GPUs hold; 1 where a size is not known."""
    numbers = [int(str(size)) if str(size).isdecimal() else 0 for size in sizes]
    product = prod(numbers)
    if not counts.gpus or not product or counts.gpus % product:
        return 1
    return counts.gpus // product

"""Tools around a framework: their overrides and flags as the framework's own settings.

verl and NeMo-RL train and generate on the same GPUs with different meshes, so they give several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tracer.errors import ConfigError
from tracer.frameworks.launch.result import Process
from tracer.frameworks.launchers import Counts, whole
from tracer.frameworks.notes import Note
from tracer.frameworks.unread import Unread, unread_error

Values = Mapping[str, object]
_MEGATRON = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
    "expert_model_parallel_size", "expert_tensor_parallel_size", "virtual_pipeline_model_parallel_size",
    "sequence_parallel", "num_layers_per_virtual_pipeline_stage", "moe_token_dispatcher_type",
    "use_tp_pp_dp_mapping", "hierarchical_context_parallel_sizes", "num_distributed_optimizer_instances",
    "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers", "cp_comm_type",
    "num_moe_experts", "num_layers", "hidden_size", "num_attention_heads", "ffn_hidden_size",
    "moe_ffn_hidden_size", "moe_router_topk", "pipeline_model_parallel_layout",
    "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split",
)  # fmt: skip


_VERL_DEFAULTS: Values = {"sequence_parallel": True, "moe_token_dispatcher_type": "alltoall"}
"""verl's own defaults, of ``verl/trainer/config/engine/megatron.yaml`` (read at 0b8f32c7)."""


def adapted(adapter: str, values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    """The processes of a tool's settings, by their dotted keys.

    Raises:
        ConfigError: when no key that shapes a mesh is among them, or one has no value.
    """
    readers: dict[str, Callable[[Values, Counts, Mapping[str, str]], list[Process]]] = {
        "verl": _verl, "nemo": _nemo, "nemo-rl": _nemo_rl,
    }  # fmt: skip
    return readers[adapter](values, counts, env)


def megatron_swift(process: Process) -> Process:
    """``megatron sft`` of ms-swift: underscored flags, its own defaults, its own counts in variables.

    Source: ms-swift ``swift/megatron/arguments/megatron_args.py`` (read at 006938be): expert TP 1 where
    Megatron takes the TP size, and the alltoall dispatcher. ``NPROC_PER_NODE`` and ``NNODES`` count.
    """
    words = tuple(_dashed(word) for word in process.words)
    given = {word.partition("=")[0] for word in words}
    extra: list[str] = []
    if "--expert-tensor-parallel-size" not in given:
        extra += ["--expert-tensor-parallel-size", "1"]
    if "--moe-token-dispatcher-type" not in given:
        extra += ["--moe-token-dispatcher-type", "alltoall"]
    nodes, per_node = (process.env.get(name) for name in ("NNODES", "NPROC_PER_NODE"))
    asks = {
        name: value
        for name, value in (("NNODES", nodes), ("NPROC_PER_NODE", per_node))
        if isinstance(value, Unread)
    }
    if per_node is None and not asks:
        asks = {"NPROC_PER_NODE": Unread("$NPROC_PER_NODE", ("NPROC_PER_NODE",))}
    counts = replace(
        process.counts, nodes=whole(nodes or "1"), per_node=whole(per_node or ""), asks=asks or None
    )
    note = Note(
        "tool_defaults",
        "ms-swift's own defaults are taken: expert_tensor_parallel_size 1, moe_token_dispatcher_type "
        "alltoall",
        "give the flags to change them",
    )
    return replace(process, words=(*extra, *words), counts=counts, notes=(*process.notes, note))


def slime(process: Process) -> list[Process]:
    """slime: Megatron trains on ``--actor-num-nodes`` nodes; SGLang engines generate.

    The flags of an engine are SGLang's with ``--sglang-`` before them.
    """
    values: dict[str, object] = {}
    engine: list[str] = []
    words = process.words
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        after = words[place + 1] if place + 1 < len(words) else ""
        given = (
            Unread(value, word.missing) if equals and isinstance(word, Unread) else value if equals else after
        )
        values[name] = given
        if name.startswith("--sglang-"):
            engine += [f"--{name[9:]}", *([given] if equals or not after.startswith("--") else [])]
    counts = _counts(values, process.counts, ("--actor-num-nodes",), ("--actor-num-gpus-per-node",))
    found = [replace(process, counts=counts, role="actor", launcher="slime")]
    size = values.get("--rollout-num-gpus-per-engine")
    if isinstance(size, str):
        tp = ("--tp-size", size)
        found.append(
            Process("sglang", (*tp, *engine), process.env, Counts(), "slime", "rollout", adapter="slime")
        )
    return found


def dynamo_trtllm(process: Process) -> Process:
    """``dynamo.trtllm`` spells TensorRT-LLM's flags with dashes, and EP without the moe before it."""
    words = []
    for word in process.words:
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            name = "--" + name[2:].replace("-", "_").replace(
                "expert_parallel_size", "moe_expert_parallel_size", 1
            )
            name = name.replace("moe_moe_", "moe_")
        spelled = name + equals + value
        words.append(Unread(spelled, word.missing) if isinstance(word, Unread) else spelled)
    return replace(process, words=tuple(words))


def _dashed(word: str) -> str:
    """``--a_b true`` in Megatron's spelling."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    spelled = name.replace("_", "-") + equals + value
    return Unread(spelled, word.missing) if isinstance(word, Unread) else spelled


def _below(values: Values, *prefixes: str) -> dict[str, object]:
    """Megatron's settings under the first of these prefixes that has one."""
    for prefix in prefixes:
        found = {
            "num_experts" if name == "num_moe_experts" else name: values[prefix + name]
            for name in _MEGATRON
            if values.get(prefix + name) is not None
        }
        inner = f"{prefix}override_transformer_config."
        found |= {name: values[inner + name] for name in _MEGATRON if values.get(inner + name) is not None}
        if found:
            return found
    return {}


def _count(values: Values, *keys: str) -> tuple[int | None, Unread | None]:
    """A count under the first of these keys that is given; or the word that would give it."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, Unread):
            return None, value
        number = whole(str(value)) if value is not None and not isinstance(value, bool) else None
        if number is not None:
            return number, None
    return None, None


def _counts(values: Values, counts: Counts, nodes: tuple[str, ...], per_node: tuple[str, ...]) -> Counts:
    """Counts of a tool's own keys, which win over a launcher's."""
    found, ask = _count(values, *nodes)
    per, ask_per = _count(values, *per_node)
    if per is None and ask_per is None:
        return counts.changed(nodes=found)
    asks = {key: word for key, word in ((nodes[0], ask), (per_node[0], ask_per)) if word is not None}
    return Counts(1 if found is None and ask is None else found, per, None, per, asks or None)


def _nemo(values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    """NeMo and Megatron-Bridge: ``model.tensor_model_parallel_size=4``, ``trainer.devices=8``."""
    prefixes = dict.fromkeys(
        key[: -len(name)] for key in values for name in _MEGATRON[:5] if key.endswith(name)
    )
    shaping = _below(values, *prefixes)
    if not shaping:
        raise _nothing("NeMo", "model.tensor_model_parallel_size=4", values)
    counted = _counts(
        values,
        counts,
        ("trainer.num_nodes", "num_nodes"),
        ("trainer.devices", "num_gpus_per_node", "gpus_per_node"),
    )
    model = _model(values, "model.hf_model", "model.hf_model_id", "recipe", "model.name", "model_name")
    return [Process("megatron", (), env, counted, "NeMo", tables=shaping, adapter="nemo", model=model)]


def _model(values: Values, *keys: str) -> str:
    """The model's name under the first of these keys that is given."""
    return next((value for key in keys if isinstance(value := values.get(key), str)), "")


def _nothing(title: str, example: str, values: Values) -> ConfigError:
    shown = ", ".join(list(values)[:4]) or "no override"
    return ConfigError(
        "flags",
        shown,
        f"is recognised as {title}, but no key that shapes a mesh is among them: a recipe or a file decides",
        f"add the overrides, such as {example}",
    )


def _verl(values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    """verl: the actor (Megatron or FSDP) and its rollout (vLLM or SGLang) over the same GPUs.

    Sources: verl's ``trainer.nnodes`` and ``trainer.n_gpus_per_node``; FSDP meshes ``(ddp, fsdp)`` and
    ``(dp, sp)``, the last fastest; a rollout's engines of ``tensor_model_parallel_size`` ranks each.
    """
    root = "actor_rollout_ref."
    counted = _counts(values, counts, ("trainer.nnodes",), ("trainer.n_gpus_per_node",))
    found: list[Process] = []
    for role, prefix in (
        ("actor", f"{root}actor."), ("ref", f"{root}ref."), ("critic", "critic."),
        ("critic", "critic.model."),
    ):  # fmt: skip
        shaping = _below(values, f"{prefix}megatron.", f"{prefix}engine.")
        if shaping:
            tables = {**_VERL_DEFAULTS, **shaping}
            found.append(Process("megatron", (), env, counted, "verl", role, tables, adapter="verl"))
        elif role == "actor":
            found += _verl_fsdp(values, prefix, counted, env)
    found += _verl_rollout(values, f"{root}rollout.", counted, env)
    if not found:
        raise _nothing("verl", f"{root}rollout.tensor_model_parallel_size=2", values)
    model = _model(values, f"{root}model.path")
    return _distinct([replace(each, model=model) for each in found])


def _verl_fsdp(values: Values, prefix: str, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    keys = [f"{prefix}ulysses_sequence_parallel_size", f"{prefix}fsdp_config.fsdp_size"]
    strategy = str(values.get(f"{prefix}strategy", "fsdp"))
    if strategy == "megatron" or not (
        any(key in values for key in keys) or any(key.startswith(prefix) for key in values)
    ):
        return []
    sp, sp_ask = _count(values, keys[0], f"{prefix}fsdp_config.ulysses_sequence_parallel_size")
    shard, shard_ask = _count(values, keys[1])
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


def _verl_rollout(values: Values, prefix: str, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    names = {
        "tensor_model_parallel_size": "tensor_parallel_size", "data_parallel_size": "data_parallel_size",
        "pipeline_model_parallel_size": "pipeline_parallel_size",
    }  # fmt: skip
    given = {ours: values[prefix + name] for name, ours in names.items() if prefix + name in values}
    if not given:
        return []
    engine = str(values.get(f"{prefix}name", "vllm"))
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
        return [Process("sglang", (), env, counts, "verl", "rollout", tables, adapter="verl")]
    tables = dict(given)
    if expert is not None and str(expert) != "1":
        tables["enable_expert_parallel"] = True
    tables["distributed_executor_backend"] = "external_launcher"
    return [Process("vllm", (), env, counts, "verl", "rollout", tables, adapter="verl")]


def _nemo_rl(values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    """NeMo-RL: ``policy.megatron_cfg``, and generation by vLLM, on ``cluster.num_nodes`` nodes."""
    counted = _counts(values, counts, ("cluster.num_nodes",), ("cluster.gpus_per_node",))
    found: list[Process] = []
    shaping = _below(values, "policy.megatron_cfg.")
    if shaping:
        found.append(Process("megatron", (), env, counted, "NeMo-RL", "policy", shaping, adapter="nemo-rl"))
    tensor = {
        "tensor_parallel_size": values.get("policy.dtensor_cfg.tensor_parallel_size"),
        "context_parallel_size": values.get("policy.dtensor_cfg.context_parallel_size"),
    }
    if not shaping and any(value is not None for value in tensor.values()):
        tables = {
            "tensor_parallel_degree": tensor["tensor_parallel_size"] or 1,
            "context_parallel_degree": tensor["context_parallel_size"] or 1,
        }
        found.append(Process("torchtitan", (), env, counted, "NeMo-RL", "policy", tables, adapter="nemo-rl"))
    vllm = {
        name: values[f"policy.generation.vllm_cfg.{name}"]
        for name in ("tensor_parallel_size", "pipeline_parallel_size")
        if f"policy.generation.vllm_cfg.{name}" in values
    }
    if vllm:
        tables = {**vllm, "distributed_executor_backend": "external_launcher"}
        found.append(Process("vllm", (), env, counted, "NeMo-RL", "generation", tables, adapter="nemo-rl"))
    if not found:
        raise _nothing("NeMo-RL", "policy.megatron_cfg.tensor_model_parallel_size=4", values)
    model = _model(values, "policy.model_name")
    return [replace(each, model=model) for each in found]


def _distinct(processes: list[Process]) -> list[Process]:
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

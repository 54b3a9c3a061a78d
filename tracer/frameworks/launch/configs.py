"""Configuration files: which framework a table of keys is for, and what in it is for which process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tracer.errors import ConfigError, listed
from tracer.frameworks.config_files import known_keys, leaves
from tracer.frameworks.flags import Flag
from tracer.frameworks.launch.interpolation import resolved
from tracer.frameworks.launch.result import Process
from tracer.frameworks.launch.tools.adapters import adapted
from tracer.frameworks.launch.tools.other_tools import check_tool
from tracer.frameworks.launchers import Counts
from tracer.frameworks.notes import Note
from tracer.frameworks.parsing import FlagTable
from tracer.frameworks.registry import FRAMEWORKS, framework

_MARKS = {
    "accelerate": "compute_environment distributed_type parallelism_config",
    "maxtext": "ici_ dcn_",
    "deepspeed": "zero_optimization train_batch_size train_micro_batch_size_per_gpu expert_parallel. "
    "tensor_parallel.autotp_size",
    "torchtitan": "parallelism.data_parallel parallelism.tensor_parallel_degree training.local_batch_size "
    "job.dump_folder",
    "nanotron": "parallelism.dp parallelism.tp parallelism.pp",
    "sglang": "model-path model_path tp-size mem-fraction-static",
    "tensorrt-llm": "moe_expert_parallel_size kv_cache_config enable_attention_dp "
    "cuda_graph_config moe_config",
    "vllm": "tensor-parallel-size enable-expert-parallel gpu-memory-utilization max-model-len max_model_len",
}
"""Keys, or their beginnings, that a framework's files have and others' have not."""


MIN_UNKNOWN = 6
_PLAIN_NAMED = ("vllm", "sglang", "tensorrt-llm", "accelerate", "megatron")
"""Frameworks whose keys are plain words that other tools' files have too (``tensor_parallel_size``)."""


def processes_of(tables: Mapping[str, object], hint: str | None, name: str) -> tuple[str, list[Process]]:
    """What a configuration is, and the processes it describes; ``hint`` is a framework the caller names.

    Raises:
        ConfigError: when no framework is recognised, or several are.
    """
    if "context_servers" in tables or "generation_servers" in tables:
        return "trtllm-serve disaggregated file", disaggregated(tables)
    workers = tables.get("worker_config")
    if isinstance(workers, dict) and {"ctx", "gen"} & workers.keys():
        return "TensorRT-LLM benchmark configuration", _benchmark_pools(tables, workers)
    arguments = tables.get("MODEL_ARGS")
    if isinstance(arguments, dict):
        return "Megatron test configuration", [_megatron_test(tables, arguments)]
    flat = resolved(dict(leaves(tables, "", set())))
    keys = list(flat)
    adapter = _adapter(keys)
    if adapter is not None and hint in (None, "megatron", "vllm", "sglang", "accelerate"):
        notes = _defaults_note(tables)
        found = adapted(adapter, flat, Counts(), {})
        return f"{adapter} configuration", [replace(one, notes=(*one.notes, *notes)) for one in found]
    if hint is None:
        check_tool(keys, tables, name)
    known = hint or _framework(keys, name)
    counts = Counts()
    if known == "accelerate":
        counts = Counts(nodes=_count(tables, "num_machines"), tasks=_count(tables, "num_processes"))
        if str(tables.get("distributed_type")).upper() in ("NO", "FALSE"):
            counts = Counts(nodes=1, tasks=1)  # accelerate's simple_launcher starts one process
    title = framework(known).title
    return f"{title} configuration", [Process(known, tables=tables, counts=counts, from_file=True)]


def _defaults_note(tables: Mapping[str, object]) -> tuple[Note, ...]:
    """A remark about the configuration below this one, which sets what this one does not."""
    below = tables.get("defaults")
    if not isinstance(below, str | list) or not below:
        return ()
    shown = below if isinstance(below, str) else ", ".join(map(str, below[:4]))
    message = f"defaults: {shown[:120]} sets what this file does not; it was not opened"
    return (Note("config_file_not_read", message, "give every size here, or the two files as one"),)


def _count(tables: Mapping[str, object], key: str) -> int | None:
    value = tables.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else None


def _adapter(keys: list[str]) -> str | None:
    if any(key.startswith("actor_rollout_ref.") for key in keys):
        return "verl"
    if any(key.startswith(("policy.megatron_cfg.", "policy.dtensor_cfg.")) for key in keys):
        return "nemo-rl"
    if any(
        re.fullmatch(r"(?:\w+\.)*model\.(?:tensor|pipeline|expert)_model_parallel_size", key) for key in keys
    ):
        return "nemo"
    return None


def _framework(keys: list[str], name: str) -> str:
    """The framework whose marks and keys a configuration has."""
    scores: dict[str, int] = {}
    for known, marks in _MARKS.items():
        scores[known] = sum(
            3 for mark in marks.split() if any(key == mark or key.startswith(mark) for key in keys)
        )
    for known in FRAMEWORKS:
        table = _keys_of(known)
        shaping = {key for key, flag in table.items() if flag.shapes and flag.dest != "config_file"}
        scores[known] = scores.get(known, 0) + len(shaping & {key.replace("-", "_") for key in keys})
    best = max(scores.values(), default=0)
    first = [known for known, score in scores.items() if score == best]
    if not best:
        shown = ", ".join(keys[:6]) or "none"
        raise ConfigError(
            name,
            f"keys {shown}",
            "are those of no framework whose settings are read here",
            f"name it: tokentrip from FRAMEWORK FILE, with {listed(FRAMEWORKS)}",
        )
    if len(first) > 1:
        raise ConfigError(
            name,
            f"keys {', '.join(keys[:6])}",
            f"are read by {listed(first)}",
            f"name one: tokentrip from {first[0]} FILE",
        )
    _check_own(first[0], keys, name)
    return first[0]


def _keys_of(known: str) -> dict[str, Flag]:
    """The keys that a framework's files may have, of those that are flags of its table."""
    loaded = framework(known)
    return known_keys(FlagTable(loaded.flags, loaded.dialect, loaded.others.names))


def _check_own(found: str, keys: list[str], name: str) -> None:
    """Refuse a file of which most keys are none of the framework's: another tool's, with some alike."""
    if found not in _PLAIN_NAMED:
        return
    others = framework(found).others
    table = _keys_of(found)
    unknown = [
        key
        for key in keys
        if key.replace("-", "_") not in table and not others.passes_over(key) and not others.lacks(key)
    ]
    if len(unknown) >= MIN_UNKNOWN and 2 * len(unknown) > len(keys):
        raise ConfigError(
            name,
            f"keys {', '.join(unknown[:6])}",
            f"are {len(unknown)} of {len(keys)} that {framework(found).title} has not, though others are "
            "spelled as its own: this is another tool's file",
            f"name the framework if it is one: tokentrip from {found} FILE",
        )


def disaggregated(tables: Mapping[str, object]) -> list[Process]:
    """The pools of a ``trtllm-serve disaggregated`` file; its own keys hold for both."""
    shared = {
        key: value
        for key, value in tables.items()
        if key not in ("context_servers", "generation_servers", "urls", "hostname", "port")
    }
    found = []
    for key, role in (("context_servers", "prefill"), ("generation_servers", "decode")):
        pool = tables.get(key)
        if isinstance(pool, dict) and pool.get("num_instances") != 0:
            own = {name: value for name, value in pool.items() if name not in ("urls", "router")}
            found.append(
                Process(
                    "tensorrt-llm",
                    tables={**shared, **own},
                    role=role,
                    from_file=True,
                    adapter="disaggregated",
                )
            )
    return found


def _benchmark_pools(tables: Mapping[str, object], workers: Mapping[str, object]) -> list[Process]:
    """The pools of TensorRT-LLM's Slurm benchmarks: ``worker_config.ctx`` and ``worker_config.gen``."""
    hardware = tables.get("hardware")
    per_node = _count(hardware, "gpus_per_node") if isinstance(hardware, dict) else None
    found = []
    for key, role in (("ctx", "prefill"), ("gen", "decode")):
        own = workers.get(key)
        if isinstance(own, dict):
            counts = Counts(gpus_per_node=per_node)
            settings = {str(name): value for name, value in own.items()}
            experts = settings.get("moe_config")
            if isinstance(experts, dict) and experts.get("load_balancer") in ({"num_slots": 0}, None):
                # The benchmark leaves a balancer of no slots out.
                settings["moe_config"] = {name: experts[name] for name in experts if name != "load_balancer"}
            found.append(Process("tensorrt-llm", (), {}, counts, role=role, tables=settings, from_file=True))
    return found


def _megatron_test(tables: Mapping[str, object], arguments: Mapping[str, object]) -> Process:
    """``MODEL_ARGS:`` of Megatron's functional tests: flags as keys; ``true`` is a switch."""
    words: list[str] = []
    for key, value in arguments.items():
        flag = str(key)
        if not flag.startswith("--") or value is False or value is None:
            continue
        words.append(flag)
        if value is not True:
            items = value if isinstance(value, list) else str(value).split()
            words += [str(item) for item in items]
    env = tables.get("ENV_VARS")
    return Process(
        "megatron",
        tuple(words),
        {str(name): str(value) for name, value in env.items()} if isinstance(env, dict) else {},
        from_file=True,
    )

"""Configuration files: which framework a table of keys is for, and what in it is for which process."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tracer.errors import ConfigError, listed
from tracer.frameworks.config_files import known_keys, leaves
from tracer.frameworks.launch.adapters import adapted
from tracer.frameworks.launch.result import Process
from tracer.frameworks.launchers import Counts
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


def processes_of(tables: Mapping[str, object], hint: str | None, name: str) -> tuple[str, list[Process]]:
    """What a configuration is, and the processes it describes; ``hint`` is a framework the caller names.

    Raises:
        ConfigError: when no framework is recognised, or several are.
    """
    if "context_servers" in tables or "generation_servers" in tables:
        return "trtllm-serve disaggregated file", disaggregated(tables)
    arguments = tables.get("MODEL_ARGS")
    if isinstance(arguments, dict):
        return "Megatron test configuration", [_megatron_test(tables, arguments)]
    keys = [key for key, _ in leaves(tables, "", set())]
    flat = dict(leaves(tables, "", set()))
    adapter = _adapter(keys)
    if adapter is not None and hint in (None, "megatron", "vllm", "sglang", "accelerate"):
        return f"{adapter} configuration", adapted(adapter, flat, Counts(), {})
    found = hint or _framework(keys, name)
    counts = Counts()
    if found == "accelerate":
        counts = Counts(nodes=_count(tables, "num_machines"), tasks=_count(tables, "num_processes"))
    title = framework(found).title
    return f"{title} configuration", [Process(found, tables=tables, counts=counts, from_file=True)]


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
        loaded = framework(known)
        table = known_keys(FlagTable(loaded.flags, loaded.dialect, loaded.others.names))
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
    return first[0]


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

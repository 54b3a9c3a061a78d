"""A process with what its framework and its surroundings add: counts, role, pods, the file it names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from tracer.frameworks.documents import load_documents
from tracer.frameworks.launch.manifests import Pod
from tracer.frameworks.launch.result import Process
from tracer.frameworks.launch.texts import CONFIG_SUFFIXES
from tracer.frameworks.launchers import Counts, whole
from tracer.frameworks.notes import Note
from tracer.frameworks.registry import framework
from tracer.frameworks.unread import Unread

_SERVERS = frozenset({"vllm", "sglang"})
TASK_LAUNCHERS = frozenset({"srun", "mpirun", "mpiexec", "horovodrun"})


def settled(process: Process) -> Process:
    """Counts as the framework means them: a server starts its own workers, one task of srun each."""
    counts, env = process.counts, process.env
    if process.framework in _SERVERS and process.launcher in TASK_LAUNCHERS:
        counts = Counts(nodes=counts.nodes, gpus_per_node=counts.gpus_per_node)
    if process.framework == "torchtitan" and process.launcher is None:
        # run_train.sh starts 8 where NGPU is not given.
        per_node = env.get("NGPU", "8" if process.adapter == "run_train.sh" else None)
        if isinstance(per_node, Unread):
            counts = replace(counts, asks={"NGPU": per_node})
        elif per_node is not None and whole(per_node):
            counts = replace(counts, nodes=counts.nodes or 1, per_node=whole(per_node))
    return replace(process, counts=counts, role=process.role or _own_role(process))


def _own_role(process: Process) -> str:
    """``prefill`` or ``decode`` where the launch itself says so (SGLang, vLLM's KV transfer, Dynamo)."""
    words = process.words
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        value = value if equals else words[place + 1] if place + 1 < len(words) else ""
        plain = name.replace("_", "-")
        if plain == "--disaggregation-mode" and value in ("prefill", "decode"):
            return value
        if plain == "--kv-transfer-config":
            found = re.search(r"kv_(producer|consumer)\b", value)
            return {"producer": "prefill", "consumer": "decode"}[found.group(1)] if found else ""
        if plain in ("--is-prefill-worker", "--is-decode-worker"):
            return plain.split("-")[3]
    return ""


def _with_local_size(process: Process, pod: Pod) -> Process:
    """Dynamo's operator adds the local size of data parallelism to a vLLM worker over several nodes."""
    words = {word.partition("=")[0] for word in process.words}
    given = {"--data-parallel-size-local", "-dpl"} & words
    if process.adapter != "dynamo" or "--data-parallel-hybrid-lb" not in words or given or not pod.gpus:
        return process
    tp = next(
        (
            after
            for word, after in zip(process.words, process.words[1:], strict=False)
            if word in ("--tensor-parallel-size", "-tp")
        ),
        "1",
    )
    local = max(1, pod.gpus // int(tp)) if tp.isdecimal() and int(tp) else pod.gpus
    note = Note(
        "operator_adds",
        f"Dynamo's operator starts each node with --data-parallel-size-local {local}",
        "the GPUs of one pod, over its tensor parallelism",
    )
    words_with = (*process.words, "--data-parallel-size-local", str(local))
    return replace(process, words=words_with, notes=(*process.notes, note))


def in_pods(process: Process, pod: Pod) -> Process:
    """A process with what its manifest grants: GPUs per pod, and pods of one launch."""
    process = _with_local_size(process, pod)
    counts = process.counts
    if counts.gpus_per_node is None:
        counts = replace(counts, gpus_per_node=pod.gpus)
    granted = (pod.gpus * pod.size, pod.replicas) if pod.gpus else None
    return replace(process, counts=counts, pods=granted, role=process.role or pod.role)


def config_of(
    words: Sequence[str], name: str, files: Mapping[str, str]
) -> tuple[str, Mapping[str, object] | None]:
    """The configuration file that a launch names, and its tables where a here-document wrote it."""
    flag = next((flag for flag in framework(name).flags if flag.dest == "config_file"), None)
    spellings = (
        *(flag.spellings if flag is not None else ("--config",)),
        "-c",
        "--extra-engine-args",
        "--extra_engine_args",
    )
    path = ""
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in spellings or option.replace("_", "-") in spellings:
            path = value if equals else words[place + 1] if place + 1 < len(words) else ""
    text = files.get(path)
    if text is None:
        base = PurePath(path).name if path else ""
        text = next((body for file, body in files.items() if base and PurePath(file).name == base), None)
    if not path or text is None:
        return path, None
    suffix = PurePath(path).suffix.lower()
    documents = load_documents(text, suffix if suffix in CONFIG_SUFFIXES else ".yaml", path)
    table = documents[0] if documents else {}
    return path, {str(key): value for key, value in table.items()} if isinstance(table, dict) else None

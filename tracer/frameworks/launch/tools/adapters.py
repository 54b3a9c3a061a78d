"""Tools around a framework: their overrides and flags as the framework's own settings.

verl and NeMo-RL train and generate on the same GPUs with different meshes, so they give several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tracer.frameworks.launch.result import Process
from tracer.frameworks.launch.tools.nemo import read_nemo, read_nemo_rl
from tracer.frameworks.launch.tools.values import Values, counts_of
from tracer.frameworks.launch.tools.verl import read_verl
from tracer.frameworks.launchers import Counts, whole
from tracer.frameworks.notes import Note
from tracer.frameworks.unread import Unread


def adapted(adapter: str, values: Values, counts: Counts, env: Mapping[str, str]) -> list[Process]:
    """The processes of a tool's settings, by their dotted keys.

    Raises:
        ConfigError: when no key that shapes a mesh is among them, or one has no value.
    """
    readers: dict[str, Callable[[Values, Counts, Mapping[str, str]], list[Process]]] = {
        "verl": read_verl, "nemo": read_nemo, "nemo-rl": read_nemo_rl,
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
    notes = [*process.notes, note]
    if "--use-vllm" in given or "--vllm-mode" in given:
        message = "--use_vllm is not modelled: the trip lacks the engines that generate beside training"
        notes.append(Note("not_modelled", message, "the groups hold; --strict refuses it"))
    return replace(process, words=(*extra, *words), counts=counts, notes=tuple(notes))


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
    counts = counts_of(values, process.counts, ("--actor-num-nodes",), ("--actor-num-gpus-per-node",))
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


_DYNAMO_SWITCHES = frozenset({
    "--is-prefill-worker", "--is-decode-worker", "--use-vllm-tokenizer", "--publish-events-and-metrics",
    "--enable-local-indexer", "--enable-multimodal", "--use-kv-events", "--prefill-round-robin-balance",
    "--multimodal-worker", "--multimodal-encode-worker", "--multimodal-processor", "--route-to-encoder",
})  # fmt: skip
_DYNAMO_VALUES = frozenset({
    "--endpoint", "--component", "--connector", "--migration-limit", "--store-kv", "--request-plane",
    "--event-plane", "--custom-jinja-template", "--dump-config-to", "--encode-endpoint", "--modality",
    "--disaggregation-strategy", "--extra-engine-args", "--override-engine-args", "--next-endpoint",
    "--namespace", "--discovery-backend",
})  # fmt: skip
"""Flags of Dynamo's own workers (``dynamo.vllm`` and others), which shape nothing."""


def without_dynamo(process: Process) -> Process:
    """A worker of Dynamo with the framework's flags alone; of a file in JSON it keeps the name."""
    words: list[str] = []
    place = 0
    values = _DYNAMO_VALUES | ({"--disaggregation-mode"} if process.framework == "vllm" else frozenset())
    while place < len(process.words):
        word = process.words[place]
        place += 1
        name, equals, _ = word.partition("=")
        plain = name.replace("_", "-")
        if plain in _DYNAMO_SWITCHES:
            continue
        if plain in values or plain.startswith("--dyn-"):
            after = process.words[place] if place < len(process.words) else "--"
            place += 0 if equals or after.startswith("--") else 1
            continue
        words.append(word)
    return replace(process, words=tuple(words))


def _dashed(word: str) -> str:
    """``--a_b true`` in Megatron's spelling."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    spelled = name.replace("_", "-") + equals + value
    return Unread(spelled, word.missing) if isinstance(word, Unread) else spelled

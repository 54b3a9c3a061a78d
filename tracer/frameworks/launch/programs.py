"""Which framework a program starts, by its name, its module or its script; and by its flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from tracer.frameworks.registry import FRAMEWORKS, framework, framework_name
from tracer.frameworks.unread import Unread


@dataclass(frozen=True, slots=True)
class Program:
    """A known program: its framework, the way it is spoken to, and words to skip after its name.

    ``adapter`` names the reader of a tool around a framework (``verl``, ``nemo``, ``ms-swift``).
    """

    framework: str
    adapter: str = ""
    skip: int = 0
    client: bool = False


_WORDS = {
    "trtllm-serve": "tensorrt-llm", "trtllm-bench": "tensorrt-llm", "trtllm-eval": "tensorrt-llm",
    "sglang": "sglang", "vllm": "vllm",
}  # fmt: skip
_CLIENTS = {
    ("vllm", "bench"): ("serve", "sweep"), ("vllm", "chat"): (), ("vllm", "complete"): (),
    ("vllm", "collect-env"): (), ("vllm", "run-batch-client"): (),
    ("trtllm-bench", "prepare-dataset"): (),
}  # fmt: skip
_MODULES = (
    ("vllm.entrypoints.", Program("vllm")),
    ("sglang.launch_server", Program("sglang")),
    ("sglang.bench_one_batch_server", Program("sglang", client=True)),
    ("sglang.bench_serving", Program("sglang", client=True)),
    ("sglang.bench_", Program("sglang")),
    ("sglang_router.launch_server", Program("sglang")),
    ("dynamo.vllm", Program("vllm", "dynamo")),
    ("dynamo.sglang", Program("sglang", "dynamo")),
    ("dynamo.trtllm", Program("tensorrt-llm", "dynamo")),
    ("tensorrt_llm.commands.serve", Program("tensorrt-llm")),
    ("torchtitan.train", Program("torchtitan")),
    ("torchtitan.experiments.", Program("torchtitan")),
    ("MaxText.", Program("maxtext")),
    ("maxtext.", Program("maxtext")),
    ("verl.trainer.", Program("megatron", "verl")),
    ("megatron.training", Program("megatron")),
    ("accelerate.commands.launch", Program("accelerate")),
)
_SCRIPTS = (
    (
        r"pretrain_(?:gpt|bert|t5|mamba|hybrid|vlm|mimo|ict|retro|realm|ul2|multimodal|vision_\w+)(?:_\w+)?\.py",
        Program("megatron"),
    ),
    (r"run_recipe\.py", Program("megatron", "nemo")),
    (r"train_rl\.py", Program("megatron")),
    (r"run_train\.sh", Program("torchtitan", "run_train.sh")),
    (r"run_train\.py", Program("nanotron")),
    (r"quickstart_advanced\.py", Program("tensorrt-llm")),
    (r"megatron_\w+(?:_pretraining|_finetuning|_continue_training)\.py", Program("megatron", "nemo")),
    (r"main_ppo\.py|main_dapo\.py", Program("megatron", "verl")),
)
_SWIFT = frozenset({"sft", "pt", "rlhf", "export"})
_OVERRIDE = re.compile(r"\+{0,2}~?([A-Za-z_][\w.\-]*)=(.*)", re.DOTALL)


def word_program(word: str, rest: Sequence[str]) -> Program | None:
    """The framework of a program's name, or of a framework named in front of its flags."""
    if word == "megatron" and rest and rest[0] in _SWIFT:
        return Program("megatron", "ms-swift", 1)
    if word in _WORDS:
        second = rest[0] if rest else ""
        if (word, second) in _CLIENTS:
            kinds = _CLIENTS[(word, second)]
            if not kinds or (len(rest) > 1 and rest[1] in kinds):
                return Program(_WORDS[word], client=True)
        if word == "trtllm-serve" and second in ("disaggregated", "disaggregated_mpi_worker"):
            return Program("tensorrt-llm", "disaggregated", 1)
        return Program(_WORDS[word])
    if word == "nemo" and rest and rest[0] == "llm":
        return Program("megatron", "nemo", 1)
    if word in ("deepspeed", "accelerate"):
        return None
    named = framework_name(word)
    return Program(named) if named is not None else None


def module_program(module: str) -> Program | None:
    """The framework of a Python module."""
    for name, program in _MODULES:
        if module.startswith(name):
            return program
    return None


def script_program(base: str) -> Program | None:
    """The framework of a script by its usual name (pretrain_gpt.py, run_train.sh)."""
    for pattern, program in _SCRIPTS:
        if re.fullmatch(pattern, base):
            return program
    return None


def overrides(words: Iterable[str]) -> dict[str, str]:
    """``a.b=4`` words as keys and values; ``+a.b=4`` too. The last of a repeated key counts."""
    found: dict[str, str] = {}
    for word in words:
        matched = _OVERRIDE.fullmatch(word[:10_000])
        if matched is not None and not word.startswith("-"):
            value = matched.group(2)
            found[matched.group(1)] = Unread(value, word.missing) if isinstance(word, Unread) else value
    return found


def tool_of_overrides(words: Iterable[str]) -> Program | None:
    """The tool whose ``a.b=4`` overrides these are: verl, NeMo-RL, MaxText, NeMo."""
    keys = overrides(words)
    if any(key.startswith(("actor_rollout_ref.", "critic.megatron.")) for key in keys):
        return Program("megatron", "verl")
    if any(key.startswith(("policy.megatron_cfg.", "policy.dtensor_cfg.")) for key in keys):
        return Program("megatron", "nemo-rl")
    if any(re.fullmatch(r"(?:ici|dcn)_\w+_parallelism", key) for key in keys):
        return Program("maxtext")
    if any(key.rsplit(".", 1)[-1] in _MEGATRON_KEYS for key in keys):
        return Program("megatron", "nemo")
    return None


def program_of_flags(words: Sequence[str], names: Sequence[str] = FRAMEWORKS) -> Program | None:
    """The framework whose flags or overrides a script of an unknown name is given.

    The one with the most flags that shape a mesh; in a tie the first of ``names``.
    """
    tool = tool_of_overrides(words)
    if tool is not None:
        return tool
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    if "--actor-num-nodes" in flags and "megatron" in names:
        return Program("megatron", "slime")
    if flags & {"--deepspeed", "--deepspeed_config", "--deepspeed-config"} and "deepspeed" in names:
        return Program("deepspeed")
    best, most = None, 0
    for name in names if flags else ():
        known = framework(name)
        plain = {flag.replace("_", "-") for flag in flags} if known.dialect.underscores else flags
        score = len(_long_spellings(name) & plain)
        if score > most:
            best, most = name, score
    return Program(best) if best is not None else None


@cache
def _long_spellings(name: str) -> frozenset[str]:
    """The long flags of a framework that shape a mesh."""
    return frozenset(
        spelling
        for flag in framework(name).flags
        if flag.shapes
        for spelling in flag.spellings
        if len(spelling) > 6
    )


_MEGATRON_KEYS = frozenset(
    {
        "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
        "expert_model_parallel_size", "expert_tensor_parallel_size",
    }
)  # fmt: skip

"""The frameworks' own cases, each as the flags that a person would type for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Case = dict[str, Any]
RANKS = Path(__file__).parents[1] / "data" / "ranks"
FRAMEWORKS = {
    "megatron": "megatron",
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm": "tensorrt-llm",
    "torchtitan": "torchtitan",
    "deepspeed": "deepspeed",
    "nanotron": "nanotron",
}


def read(name: str) -> list[Case]:
    """The cases of one file."""
    found: list[Case] = json.loads((RANKS / f"{name}.json").read_text())
    return found


def launch(name: str, case: Case) -> tuple[list[str], str | None] | None:
    """(flags, version) of a case; None for a grid that no launch flag makes (DeviceMesh, HyperCommGrid)."""
    makers = {
        "megatron": _megatron,
        "vllm": _vllm,
        "sglang": _sglang,
        "trtllm": _trtllm,
        "torchtitan": _torchtitan,
        "deepspeed": _deepspeed,
        "nanotron": _nanotron,
    }
    return makers[name](case, dict(case["sizes"]), dict(case["expert_sizes"] or {}))


def _flags(pairs: dict[str, object]) -> list[str]:
    return [word for name, value in pairs.items() for word in (name, str(value))]


def _megatron(case: Case, sizes: dict[str, int], expert: dict[str, int]) -> tuple[list[str], None] | None:
    if "l1" in sizes:
        levels = [str(size) for size in sizes.values()]
        return ["--context-parallel-size", "16", "--hierarchical-context-parallel-sizes", *levels], None
    if not {"tp", "pp"} <= set(sizes):
        return None
    words = _flags(
        {
            "--tensor-model-parallel-size": sizes["tp"],
            "--pipeline-model-parallel-size": sizes["pp"],
            "--context-parallel-size": sizes.get("cp", 1),
        }
    )
    if expert:
        words += ["--expert-model-parallel-size", str(expert["ep"])]
    if expert.get("etp", sizes["tp"]) != sizes["tp"]:
        words += ["--expert-tensor-parallel-size", str(expert["etp"])]
    order = case["order"]
    if order == "tp-cp-ep-pp-dp":
        words.append("--use-tp-pp-dp-mapping")
    elif order not in ("tp-cp-ep-dp-pp", "tp-cp-dp-pp"):
        words += ["--order", order]
    return words, None


def _vllm(case: Case, sizes: dict[str, int], expert: dict[str, int]) -> tuple[list[str], None]:
    words = _flags({f"-{axis}": sizes[axis] for axis in ("tp", "pp", "pcp", "dp")})
    words += ["-dcp", str(sizes["dcp(not an axis)"])]
    if expert:
        words.append("--enable-expert-parallel")
    if sizes["external_dp"] > 1:
        words += ["--distributed-executor-backend", "external_launcher"]
    return words, None


def _sglang(case: Case, sizes: dict[str, int], expert: dict[str, int]) -> tuple[list[str], None]:
    return _flags(
        {
            "--tp-size": sizes["tp(total per stage)"],
            "--pp-size": sizes["pp"],
            "--attn-dp-size": sizes["attn_dp"],
            "--attn-cp-size": sizes["attn_cp"],
            "--ep-size": expert["moe_ep"],
            "--moe-dp-size": expert["moe_dp"],
            "--dcp-size": sizes["dcp(not an axis)"],
        }
    ), None


def _trtllm(case: Case, sizes: dict[str, int], expert: dict[str, int]) -> tuple[list[str], str | None]:
    if "dwdp" in sizes:
        config = {"dwdp_size": sizes["dwdp"], "num_groups": sizes["dwdp_group"]}
        return ["--dwdp_config", json.dumps(config)], None
    words = _flags({f"--{axis}_size": sizes[axis] for axis in ("tp", "pp", "cp")})
    words += _flags({"--ep_size": expert["moe_ep"], "--moe_tp_size": expert["moe_tp"]})
    if expert["moe_cluster"] > 1:
        words += ["--cluster_size", str(expert["moe_cluster"])]
    if "Helix" in case["note"]:
        words += ["--cp_config", '{"cp_type": "HELIX"}']
    return words, "1.1.0" if case["order"] == "tp-cp-pp" else None


def _torchtitan(case: Case, sizes: dict[str, int], expert: dict[str, int]) -> tuple[list[str], None] | None:
    if "dp_shard" not in sizes:
        return None
    words = {
        "data_parallel_replicate_degree": sizes["dp_replicate"],
        "tensor_parallel_degree": sizes["tp"],
        "context_parallel_degree": sizes["cp"],
        "pipeline_parallel_degree": sizes["pp"],
        "expert_parallel_degree": expert["ep"],
    }
    return _flags({f"--parallelism.{name}": value for name, value in words.items()}), None


def _deepspeed(case: Case, sizes: dict[str, int], expert: dict[str, int]) -> tuple[list[str], None]:
    if "pipe" in sizes:
        names = {"--num-pp": "pipe", "--num-mp": "model", "--num-dp": "data"}
        return _flags({flag: sizes[axis] for flag, axis in names.items()}), None
    if "sp" in sizes:
        return _flags({"--sequence-parallel-size": sizes["sp"]}), None
    if "dense_dp" in case["groups"]:
        return _flags({"--autotp-size": sizes["tp"], "--autoep-size": expert["ep"]}), None
    words = _flags({"--num-mp": sizes.get("tp", 1), "--ep-size": expert["ep"]})
    if case["expert_order"].endswith("edp-ep"):
        words.append("--use-data-before-expert-parallelism")
    return words, None


def _nanotron(case: Case, sizes: dict[str, int], expert: dict[str, int]) -> tuple[list[str], None]:
    names = {"dp": "dp", "pp": "pp", "tp": "tp", "context_parallel_size": "cp", "expert_parallel_size": "ep"}
    return _flags({f"--parallelism.{name}": sizes[axis] for name, axis in names.items()}), None

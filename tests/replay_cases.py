"""Deployments that replay must equal one device on, as the plain dicts a person would write."""

from __future__ import annotations

import copy
from typing import Any

import tracer

Table = dict[str, Any]

GQA: Table = {"layers": 3, "hidden": 64, "heads": 16, "kv_heads": 4, "head_dim": 4, "vocab": 96}
MOE: Table = {**GQA, "experts": 8, "top_k": 2, "expert_hidden": 8}
MIXTRAL: Table = {
    **MOE, "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128, "hidden": 4096, "vocab": 32000,
    "expert_hidden": 14336, "router": "softmax_topk", "renormalise": True,
}  # fmt: skip
LLAMA: Table = {
    "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "vocab": 128256,
    "dense_hidden": 14336,
}  # fmt: skip


def deployment(model: Table | str, mesh: Table, **tables: Any) -> tracer.Scenario:
    """A scenario of a model (or the name of a preset model) on a mesh."""
    told = {"preset": model} if isinstance(model, str) else model
    return tracer.Scenario.from_dict({"model": told, "mesh": mesh, **tables})


def shared_model(**changes: Any) -> Table:
    """A small MoE model with one dense layer, a shared expert, and what else is asked."""
    return {**MOE, "dense_layers": 1, "dense_hidden": 16, "shared_experts": 1, **copy.deepcopy(changes)}


NAMED: dict[str, tracer.Scenario] = {
    "six-cuts": tracer.load_scenario("six-cuts"),
    "six-cuts, pp and dp swapped": tracer.load_scenario("six-cuts-pp-inside-dp"),
    "Mixtral TP8": deployment(MIXTRAL, {"tp": 8, "contract": "tp"}),
    "Mixtral EP8": deployment(MIXTRAL, {"tp": 8, "ep": 8}),
    "DeepSeek-V3 EP32": tracer.load_scenario("deepseek-v3-prefill-ep32"),
    "DeepSeek-V3 EP64": deployment(
        "deepseek-v3", {"dp": 64, "ep": 64}, dtype={"dispatch": "fp8"}, token={"prompt": 4096}
    ),
    "DeepSeek-V3, MLA over tp and cp": deployment(
        "deepseek-v3", {"tp": 4, "cp": 2, "dp": 2, "ep": 16}, token={"prompt": 100}
    ),
    "Llama dense TP8 CP2 PP2": deployment(LLAMA, {"tp": 8, "cp": 2, "pp": 2}),
    "n_kv < tp": deployment({**MOE, "kv_heads": 2}, {"tp": 4, "cp": 2, "ep": 8}),
    "cp 4, ring": deployment(MOE, {"cp": 4, "tp": 2, "ep": 8}),
    "cp 4, all-gather": deployment(MOE, {"cp": 4, "tp": 2, "ep": 8, "kv_exchange": "all_gather"}),
    "etp 2": deployment(MOE, {"tp": 2, "cp": 2, "dp": 2, "ep": 4, "etp": 2}),
    "edp 2": deployment(MOE, {"tp": 2, "cp": 2, "dp": 2, "ep": 4}),
}

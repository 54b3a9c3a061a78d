"""Reads the frameworks' group lists and says which grid and which axes each list is made of.

Every framework keeps its own axis names: the grid takes any strings. What a list means follows from the
framework's own words, quoted where a list is not simply one axis.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data" / "ranks"
FRAMEWORKS = ("megatron", "vllm", "sglang", "trtllm", "torchtitan", "deepspeed", "nanotron")

#: Lists whose member order means something: EP rank -> experts, pipeline order, DCP token order.
ORDERED = {"ep", "moe_ep", "pp", "pipe", "dcp"}

#: Lists over several axes, by framework; Megatron writes the axes into the name ("dp-cp", "etp-ep-pp").
COMPOSITE: dict[str, dict[str, tuple[str, ...]]] = {
    "vllm": {"ep": ("tp", "pcp", "dp")},  # "all_ranks.transpose(DP, PP).reshape(-1, DP * PCP * TP)"
    "sglang": {"tp": ("attn_tp", "attn_cp", "attn_dp")},  # --tp-size is the size of a whole stage
    "torchtitan": {
        "batch": ("dp_shard", "dp_replicate"),
        "dp": ("dp_shard", "dp_replicate"),
        "loss": ("cp", "dp_shard", "dp_replicate"),
    },
    "deepspeed": {"dense_dp": ("dp",), "sp-dp": ("sp", "dp")},
    "nanotron": {"mp": ("tp", "pp"), "dp_cp": ("cp", "dp")},
}


@dataclass(frozen=True)
class Layout:
    """A grid (axes fastest first), the axes that vary inside a group, and the first rank it covers."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    varying: tuple[str, ...]
    first_rank: int = 0
    walked_first: tuple[str, ...] = ()  # the axes a member list walks, fastest first, where not ascending


@dataclass(frozen=True)
class Case:
    """One group list of one framework."""

    framework: str
    case_id: str
    name: str
    expected: list[list[int]]
    layout: Layout
    world_size: int

    def __str__(self) -> str:
        return f"{self.case_id} {self.name}"


def _grid(order: str, sizes: dict[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Axes of an order string and their sizes: 1 for an axis without a size, last an axis without a place."""
    names = order.split("-")
    real = {name: size for name, size in sizes.items() if "(" not in name}  # "tp(total per stage)" is a sum
    names += [name for name in real if name not in names]
    return tuple(names), tuple(real.get(name, 1) for name in names)


def _dense(case: dict[str, Any], varying: tuple[str, ...]) -> Layout:
    return Layout(*_grid(case["order"], case["sizes"]), varying)


def _expert(framework: str, case: dict[str, Any], varying: tuple[str, ...]) -> Layout:
    """The second grid over the same ranks."""
    order, sizes = case["expert_order"], dict(case["expert_sizes"])
    if framework == "megatron":  # one string for both grids: tp means etp, dp means edp, cp is 1
        words = {"tp": "etp", "dp": "edp"}
        order = "-".join(words.get(axis, axis) for axis in order.removesuffix(" (cp=1)").split("-"))
    if "(tp)" in order:  # the legacy rule carves EP out of each DP group, so tp stays the fastest axis
        order = order.replace("(tp)", "tp")
        sizes["tp"] = case["sizes"]["tp"]
    return Layout(*_grid(order, sizes), varying)


def _dcp(case: dict[str, Any]) -> Layout:
    """Decode context parallelism has no ranks of its own: it is cut out of the TP (and PCP) ranks."""
    dcp, sizes = case["sizes"]["dcp(not an axis)"], dict(case["sizes"])
    if sizes.get("pcp", 1) == 1:  # contiguous slices of the TP group
        tp = "attn_tp" if "attn_tp" in sizes else "tp"
        order = case["order"].replace(tp, "dcp-lanes", 1)
        lanes = sizes.pop(tp) // dcp
        return Layout(*_grid(order, {**sizes, "dcp": dcp, "lanes": lanes}), ("dcp",))
    varying = ("pcp",) if dcp == sizes["pcp"] else ("pcp", "tp")  # "PCP walked first"
    return Layout(*_grid(case["order"], sizes), varying, walked_first=varying)


def _layout(framework: str, case: dict[str, Any], name: str) -> Layout:
    if name == "dcp":
        return _dcp(case)
    if name == "a-b(raw member order)":  # Megatron's raw enumeration moves its first axis first
        return Layout(*_grid(case["order"], case["sizes"]), ("a", "b"), walked_first=("b", "a"))
    if framework == "megatron" and "rank_offset=4" in case["note"]:
        return Layout(*_grid(case["order"], case["sizes"]), (name,), first_rank=4)
    composite = COMPOSITE.get(framework, {}).get(name)
    if composite:
        return _dense(case, composite)
    varying = tuple(name.split("-")) if framework == "megatron" else (name,)
    dense_names = case["order"].split("-")
    is_expert = {"etp", "ep", "edp"} & set(varying) or not set(varying) <= set(dense_names)
    return _expert(framework, case, varying) if is_expert else _dense(case, varying)


def _first_and_last(lists: list[list[int]]) -> list[list[int]]:
    return [[ranks[0], ranks[-1]] if len(ranks) > 1 else ranks for ranks in lists]


def read(framework: str) -> list[dict[str, Any]]:
    """The cases of one file, each with its source."""
    listed: list[dict[str, Any]] = json.loads((DATA / f"{framework}.json").read_text())
    return listed


def cases() -> list[Case]:
    """Every group list of every case, but Megatron's `embd`, which is made from its `pp` lists."""
    found = []
    for framework in FRAMEWORKS:
        for case in read(framework):
            for name, expected in case["groups"].items():
                if name != "embd":
                    layout = _layout(framework, case, name)
                    found.append(Case(framework, case["case_id"], name, expected, layout, case["world_size"]))
    return found


def embedding_cases() -> list[tuple[str, list[list[int]], list[list[int]]]]:
    """(case id, Megatron's `embd` lists, first and last rank of its `pp` lists)."""
    return [
        (case["case_id"], case["groups"]["embd"], _first_and_last(case["groups"]["pp"]))
        for case in read("megatron")
        if "embd" in case["groups"]
    ]


def covered(layout: Layout) -> int:
    """How many ranks the grid has."""
    return math.prod(layout.sizes)

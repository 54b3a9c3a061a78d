"""The controls of the mesh page: every key of a scenario that can be chosen there, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracer.mesh.hardware import hardware_preset_names
from tracer.model.configs import model_preset_names
from tracer.scenario.plan import CHOICES


@dataclass(frozen=True, slots=True)
class Field:
    """One control: its key, label, kind (``size``, ``choice``, ``flag``, ``order``) and a short help."""

    key: str
    label: str
    kind: str
    help: str = ""
    choices: tuple[str, ...] = ()


def _choice(name: str, label: str, help_text: str) -> Field:
    return Field(f"mesh.{name}", label, "choice", help_text, tuple(str(word) for word in CHOICES[name]))


def field_groups() -> list[tuple[str, list[Field]]]:
    """Titles and their controls, in the order of the page."""
    return [
        ("Attention mesh", _dense()),
        ("Expert mesh", _expert()),
        ("Cluster", _cluster()),
        ("Model", [Field("model.preset", "Model", "choice", "", ("", *model_preset_names()))]),
        ("How it is run", _plan()),
        ("Token", _token()),
    ]


def _dense() -> list[Field]:
    return [
        Field("mesh.tp", "TP", "size", "cuts heads and matrices"),
        Field("mesh.cp", "CP", "size", "cuts one prompt"),
        Field("mesh.dp", "DP", "size", "copies attention"),
        Field("mesh.pp", "PP", "size", "cuts layers"),
        Field("mesh.chunks", "Chunks a stage", "size", "virtual stages: runs of layers on each stage"),
        Field(
            "mesh.order",
            "Order, fastest first",
            "order",
            "neighbours along the first axis are one rank apart",
        ),
    ]


def _expert() -> list[Field]:
    return [
        Field("mesh.ep", "EP", "size", "spreads experts over a stage"),
        Field("mesh.etp", "ETP", "size", "cuts each expert"),
    ]


def _cluster() -> list[Field]:
    return [
        Field("cluster.hardware", "Hardware", "choice", "", ("", *hardware_preset_names())),
        Field("cluster.gpus_per_node", "GPUs per node", "size"),
        Field("cluster.nodes_per_island", "Nodes an NVLink island", "size"),
    ]


def _plan() -> list[Field]:
    return [
        _choice("sp", "Sequence parallelism", "where each token lives on one TP rank"),
        _choice("contract", "Experts", "what moves: tokens, sums, all rows, or weights"),
        _choice("dispatch", "Dispatch", "relays, or straight to each expert"),
        _choice("kv_exchange", "K/V exchange", "K/V round a ring, straight, or heads (Ulysses)"),
        _choice(
            "state_exchange", "States over CP", "of linear attention and Mamba: handed on, or heads move"
        ),
        _choice("tp_algo", "TP collectives", "straight to each, or round a ring"),
        _choice("landing", "Prompt over CP", "zigzag balances causal work"),
        _choice("chunk_order", "Chunks over stages", "round and round, or to the last stage and back"),
        _choice("embedding", "Embedding", "whole on each GPU, or cut by vocabulary"),
        _choice("weight_shard", "Sharded weights", "pieces over data parallelism, gathered before use"),
        _choice("shared_tp", "Shared expert over TP", "whole, sliced with hops of its own, or merged"),
    ]


def _token() -> list[Field]:
    return [
        Field("token.prompt", "Prompt length", "size"),
        Field("token.position", "Position", "count"),
        Field("token.replica", "Replica", "count"),
    ]


def fields_payload() -> list[dict[str, Any]]:
    """The groups as JSON values."""
    return [
        {
            "title": title,
            "fields": [
                {"key": f.key, "label": f.label, "kind": f.kind, "help": f.help, "choices": list(f.choices)}
                for f in fields
            ],
        }
        for title, fields in field_groups()
    ]

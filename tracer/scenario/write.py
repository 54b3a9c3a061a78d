"""Scenarios as plain tables and as TOML, every key written; ``read`` is the way back."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError, nearest
from tracer.mesh.hardware import GPU_FIGURES
from tracer.scenario.deployment import Deployment
from tracer.scenario.read import CLUSTER_KEYS, DTYPE_KEYS, MESH_KEYS, PLAN_KEYS, SIZES, TOKEN_KEYS

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster
    from tracer.scenario.deployment import BareDeployment
    from tracer.scenario.token import Phase, Token

Table = dict[str, Any]
ONLY_WHERE_SAID = {"text": None, "weight_prefetch": True}
"""Keys that are left out at these values: files and pictures written before they existed stay as they are."""


def tables_of(
    deployment: BareDeployment,
    token: Token,
    phase: Phase,
    picks: tuple[tuple[int, tuple[int, ...]], ...],
    seed: int,
) -> Table:
    """A deployment and a question as JSON values, every key present but those of ``ONLY_WHERE_SAID``."""
    mesh, placed = deployment.mesh, deployment if isinstance(deployment, Deployment) else None
    return {
        "schema": 1,
        "name": deployment.name,
        "source": deployment.source,
        "phase": str(phase),
        "seed": seed,
        "cluster": _cluster_table(deployment.cluster),
        "model": None if placed is None else placed.model.to_dict(),
        "mesh": {
            "order": "-".join(mesh.dense.names),
            **{axis: mesh.size_of(axis) for axis in SIZES},
            "expert_order": mesh.expert_order,
            "strict": mesh.strict,
            **{
                key: _plain(getattr(deployment.plan, key)) for key in PLAN_KEYS if _said(deployment.plan, key)
            },
        },
        "placement": None if placed is None else _placement_table(placed),
        "dtype": {key: _plain(getattr(deployment.dtype, key)) for key in DTYPE_KEYS},
        "token": {key: getattr(token, key) for key in TOKEN_KEYS if _said(token, key)},
        "picks": {str(layer): list(experts) for layer, experts in picks},
    }


def changed_tables(tables: Table, keys: dict[str, Any]) -> Table:
    """Tables with keys of mesh, token, dtype or cluster set; what followed from the mesh is left to follow.

    Raises:
        ConfigError: for a key that none of them has, with the nearest that one has.
    """
    known = {
        **dict.fromkeys(CLUSTER_KEYS, "cluster"),
        **dict.fromkeys(DTYPE_KEYS, "dtype"),
        **dict.fromkeys(TOKEN_KEYS, "token"),
        **dict.fromkeys((*MESH_KEYS, *PLAN_KEYS), "mesh"),
    }
    for name, value in keys.items():
        if name not in known:
            rule = "is no part of a scenario, and no key of its mesh, token, dtype or cluster"
            raise ConfigError(name, value, rule, nearest(name, list(known)))
    for table in ("mesh", "token", "dtype", "cluster"):
        own = {name: value for name, value in keys.items() if known[name] == table}
        tables[table] = tables[table] | own
    if any(known[name] == "mesh" for name in keys):
        for table, name in (("mesh", "edp"), ("cluster", "nodes")):
            if name not in keys:
                tables[table].pop(name, None)
    if {"position", "gpu"} & keys.keys():
        for name in {"position", "gpu", "replica"} - keys.keys():
            tables["token"].pop(name, None)
    return tables


def _said(owner: object, key: str) -> bool:
    """Whether a key is written: all are, but those that say nothing at their default."""
    return key not in ONLY_WHERE_SAID or getattr(owner, key) != ONLY_WHERE_SAID[key]


def toml_of(tables: Table) -> str:
    """Tables as TOML; keys without a value are left out."""
    import tomli_w

    return tomli_w.dumps(_without_nulls(tables))


def _cluster_table(cluster: Cluster) -> Table:
    return {
        "nodes": cluster.nodes,
        "gpus_per_node": cluster.gpus_per_node,
        "nodes_per_island": cluster.nodes_per_island,
        "hardware": cluster.hardware,
        "nvlink_bytes_per_s": cluster.nvlink.bytes_per_s,
        "nvlink_latency_s": cluster.nvlink.latency_s,
        "ib_bytes_per_s": cluster.ib.bytes_per_s,
        "ib_latency_s": cluster.ib.latency_s,
        **{name: getattr(cluster.figures, name) for name in GPU_FIGURES},
        "placement": None if cluster.placement is None else [list(pair) for pair in cluster.placement],
    }


def _placement_table(deployment: Deployment) -> Table | None:
    placement = deployment.placement
    if placement is None:
        return None
    return {
        "kind": str(placement.kind),
        "remainder": str(placement.remainder),
        "slots": None if placement.slots is None else list(placement.slots),
        "slots_by_layer": {
            str(layer): list(entry.slots or ()) for layer, entry in deployment.layer_placements
        },
    }


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, StrEnum) else value


def _without_nulls(table: Table) -> Table:
    kept = {}
    for key, value in table.items():
        if isinstance(value, dict):
            value = _without_nulls(value) or None
        if value is not None:
            kept[key] = value
    return kept

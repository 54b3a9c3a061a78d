"""Scenarios as plain tables and as TOML, every key written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracer.scenario_read import DTYPE_KEYS, PLAN_KEYS, SIZES, TOKEN_KEYS

if TYPE_CHECKING:
    from tracer.scenario import Scenario

Table = dict[str, Any]


def scenario_to_dict(scenario: Scenario) -> Table:
    """A scenario as JSON values, every key present; ``scenario_from_dict`` gives an equal one back."""
    mesh, cluster, plan, token = scenario.mesh, scenario.cluster, scenario.plan, scenario.token
    return {
        "schema": 1,
        "name": scenario.name,
        "source": scenario.source,
        "phase": scenario.phase,
        "seed": scenario.seed,
        "cluster": {
            "nodes": cluster.nodes,
            "gpus_per_node": cluster.gpus_per_node,
            "nodes_per_island": cluster.nodes_per_island,
            "hardware": cluster.hardware,
            "nvlink_bytes_per_s": cluster.nvlink.bytes_per_s,
            "nvlink_latency_s": cluster.nvlink.latency_s,
            "ib_bytes_per_s": cluster.ib.bytes_per_s,
            "ib_latency_s": cluster.ib.latency_s,
            "placement": None if cluster.placement is None else [list(pair) for pair in cluster.placement],
        },
        "model": None if scenario.model is None else scenario.model.to_dict(),
        "mesh": {
            "order": "-".join(mesh.dense.names),
            **{axis: mesh.size_of(axis) for axis in SIZES},
            "expert_order": mesh.expert_order,
            "strict": mesh.strict,
            **{key: _plain(getattr(plan, key)) for key in PLAN_KEYS},
        },
        "placement": _placement_to_dict(scenario),
        "dtype": {key: getattr(scenario.dtype, key) for key in DTYPE_KEYS},
        "token": {key: getattr(token, key) for key in TOKEN_KEYS},
        "picks": {str(layer): list(experts) for layer, experts in scenario.picks},
    }


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value


def _placement_to_dict(scenario: Scenario) -> Table | None:
    placement = scenario.placement
    if placement is None:
        return None
    return {
        "kind": placement.kind,
        "remainder": placement.remainder,
        "slots": None if placement.slots is None else list(placement.slots),
        "slots_by_layer": {str(layer): list(entry.slots or ()) for layer, entry in scenario.layer_placements},
    }


def scenario_to_toml(scenario: Scenario) -> str:
    """A scenario as TOML; keys without a value are left out."""
    import tomli_w

    return tomli_w.dumps(_without_nulls(scenario_to_dict(scenario)))


def _without_nulls(table: Table) -> Table:
    kept = {}
    for key, value in table.items():
        if isinstance(value, dict):
            value = _without_nulls(value) or None
        if value is not None:
            kept[key] = value
    return kept

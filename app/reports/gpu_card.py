"""The card of one GPU: its coordinates, its groups, and what it holds."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from app.reports.gpu_inside import inside
from layouts.scene.labels import expert_label, gpus, plural, stage_layers_text
from tracer.display import format_bytes
from tracer.errors import ConfigError
from tracer.memory.reports import rank_report
from tracer.memory.residency import residency_of
from tracer.mesh.axes import Axis
from tracer.mesh.mesh import GROUP_NAMES
from tracer.scenario.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracer.scenario.scenario import BareScenario

LIT = 512
NOTES = {
    "tp": "share every layer's matrices",
    "cp": "share one prompt",
    "dp": "replicas of the attention weights",
    "pp": "hold other layers",
    "etp": "share each expert",
    "ep": "hold other experts",
    "edp": "hold the same experts",
    "replica": "serve one request together",
}


def gpu_card(scenario: BareScenario, rank: int) -> dict[str, Any]:
    """The card of a rank; groups list their first ``LIT`` members, to be lit on the map.

    Raises:
        ConfigError: when there is no such rank.
    """
    report = rank_report(scenario, rank)
    mesh = scenario.mesh
    return {
        "rank": rank,
        "place": _place(scenario, rank),
        "coordinates": report["coordinates"],
        "groups": [
            _group(name, mesh.group(rank, name)) for name in GROUP_NAMES if len(mesh.group(rank, name)) > 1
        ],
        "holds": holdings(scenario, rank) if isinstance(scenario, Scenario) else [],
        "experts": _experts(scenario, rank) if isinstance(scenario, Scenario) else {},
        "inside": inside(scenario, rank) if isinstance(scenario, Scenario) else None,
    }


def _place(scenario: BareScenario, rank: int) -> str:
    cluster = scenario.cluster
    domain, rail = cluster.nvlink_domain_of(rank), cluster.index_in_nvlink_domain(rank)
    return f"{cluster.domain_word} {domain:,}, rail {rail}"


def _group(name: str, members: Sequence[int]) -> dict[str, Any]:
    return {
        "name": name,
        "size": len(members),
        "text": f"{gpus(members) if len(members) <= LIT else plural(len(members), 'GPU')}: "
        f"{NOTES.get(name, '')}.",
        "members": list(islice(iter(members), LIT)),
    }


def holdings(scenario: Scenario, rank: int) -> list[str]:
    """What a GPU holds, in a few words each."""
    model, mesh = scenario.model, scenario.mesh
    found = [stage_layers_text(scenario, mesh.stage_of(rank))]
    if model.heads:
        found.append(plural(model.heads // mesh.tp, "query head"))
    if model.mla:
        found.append("whole K/V latents")
    elif model.kv_heads:
        found.append(plural(max(1, model.kv_heads // mesh.tp), "KV head"))
    experts = expert_label(scenario, rank)
    if experts:
        found.append(f"experts {experts} a layer")
    return found + _memory(scenario, rank)


def _memory(scenario: Scenario, rank: int) -> list[str]:
    """Bytes of weights, and the tokens of K/V that still fit, where the scenario says enough."""
    try:
        held = residency_of(scenario, rank)
    except ConfigError:
        return []
    found = [
        f"{format_bytes(held.weight_bytes)} of weights",
        f"{format_bytes(held.kv_bytes_per_token)} of K/V a token",
    ]
    room = held.kv_tokens_that_fit
    return found if room is None else [*found, f"room for the K/V of {room:,} tokens"]


def _experts(scenario: Scenario, rank: int) -> dict[str, list[int]]:
    """Experts in the GPU's slots, by MoE layer of its stage."""
    model, mesh = scenario.model, scenario.mesh
    if model.experts is None:
        return {}
    stage = mesh.stage_of(rank)
    ep = mesh.expert_coordinate(rank, Axis.EP)
    return {
        str(layer): list(dict.fromkeys(scenario.placement_of(layer).experts_of(ep)))
        for layer in scenario.layers_of(stage)
        if model.is_moe(layer)
    }

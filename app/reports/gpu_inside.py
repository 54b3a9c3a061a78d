"""The picture of an opened GPU: its query heads, the positions whose K/V it keeps, experts, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layouts.scene.labels import first_moe_layer, plural, runs_text
from tracer.display import format_bytes
from tracer.errors import ConfigError
from tracer.memory.residency import residency_of

if TYPE_CHECKING:
    from tracer.memory.residency import Residency
    from tracer.scenario.scenario import Scenario

MAX_EXPERTS = 8


def inside(scenario: Scenario, rank: int) -> dict[str, Any] | None:
    """Bars of an opened GPU, each ``of`` a whole; None where the scenario does not say enough to size it.

    ``heads`` are [first, end) of all query heads; ``kv`` has runs of positions [first, end); ``memory`` has
    parts in bytes, and the whole where the hardware states it.
    """
    try:
        held = residency_of(scenario, rank)
    except ConfigError:
        return None
    share = held.share
    heads = share.query_heads
    return {
        "heads": {
            "runs": [[heads.start, heads.stop]],
            "of": scenario.model.heads,
            "text": _heads_text(scenario, held),
        },
        "kv": _kv(scenario, held),
        "experts": _experts(scenario, held),
        "memory": _memory(held),
    }


def _heads_text(scenario: Scenario, held: Residency) -> str:
    heads, kv_heads = held.share.query_heads, held.share.kv_heads
    own = f"query heads {heads.start}–{heads.stop - 1} of {scenario.model.heads}"
    if kv_heads is None:
        return f"{own}; the K/V latent is whole on every TP rank"
    return f"{own}; K/V heads {runs_text(kv_heads)}"


def _kv(scenario: Scenario, held: Residency) -> dict[str, Any] | None:
    if not held.kv.keeps_any or not held.kv_positions:
        return None
    length = max(scenario.token.prompt, scenario.position + 1, *(run.stop for run in held.kv_positions))
    each = (
        f"{format_bytes(held.kv_bytes_per_token)} a position over {plural(held.share.layers.count, 'layer')}"
    )
    return {
        "runs": [[run.start, run.stop] for run in held.kv_positions],
        "of": length,
        "position": scenario.position,
        "text": f"K/V of {plural(held.kv_kept, 'position')} of this request, {each}",
    }


def _experts(scenario: Scenario, held: Residency) -> dict[str, Any] | None:
    width, first = held.share.expert_hidden, first_moe_layer(scenario, held.share.layers.stage)
    if width is None or first is None:
        return None
    experts = list(dict.fromkeys(scenario.placement_of(first).experts_of(held.share.ep_rank)))
    return {
        "shown": experts[:MAX_EXPERTS],
        "more": max(0, len(experts) - MAX_EXPERTS),
        "width": f"inner width {width.start:,}–{width.stop - 1:,}",
        "text": f"Experts of layer {first}, the first MoE layer here",
    }


def _memory(held: Residency) -> dict[str, Any]:
    parts = [*held.weight_bytes_by_part.items()]
    kept = held.kv_bytes_per_token * held.kv_kept
    named = [
        {"name": name.replace("_", " "), "bytes": size, "text": format_bytes(size)} for name, size in parts
    ]
    if held.staging_bytes:
        named.append(_part("staging", held.staging_bytes))
    if kept:
        named.append(_part("K/V", kept))
    free = held.free_bytes
    room = held.kv_tokens_that_fit
    return {
        "parts": named,
        "whole": held.hbm_bytes,
        "text": f"weights {format_bytes(held.weight_bytes)}"
        + (f" of {format_bytes(held.hbm_bytes)}" if held.hbm_bytes else ""),
        "fits": free is None or free >= kept,
        "room": None if room is None else f"Free memory is room for the K/V of {room:,} tokens.",
    }


def _part(name: str, size: int) -> dict[str, Any]:
    return {"name": name, "bytes": size, "text": format_bytes(size)}

"""A scenario shrunk to widths that a laptop can multiply: same mesh, kinds of layers and placement."""

from __future__ import annotations

from dataclasses import replace
from math import lcm
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.scenario.token import Token
from tracer.trip.kinds import taken_as_alike

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.scenario.scenario import Scenario

HEAD_WIDTH = 4
MOST_LAYERS = 8
FEW_LAYERS = 4
MOST_ROWS = 256
LEAST_PROMPT = 4


def shrink(scenario: Scenario) -> Scenario:
    """The scenario with small widths; what cuts and counts the trip stays: mesh, experts, top-k, groups.

    Models of more than 8 layers keep 4 (or one per chunk) with each kind of layer among them; batches of
    more than 256 rows get shorter prompts, and the token then followed is the first on the same GPU.
    """
    model = _shrink_model(scenario)
    same_layers = model.layers == scenario.model.layers
    changes: dict[str, Any] = {
        "model": model,
        "plan": scenario.plan
        if same_layers
        else replace(scenario.plan, stage_layers=None, chunk_layers=None),
        "picks": _still_moe(model, scenario.picks) if same_layers else (),
        "layer_placements": _still_moe(model, scenario.layer_placements) if same_layers else (),
        "token": _shrink_token(scenario),
        "name": f"{scenario.name or 'scenario'}, tiny"
        + "".join(f", {t}" for t in taken_as_alike(scenario.model)),
    }
    return scenario.with_(**changes)


def check_alike(scenario: Scenario) -> None:
    """Layers of several kinds are replayed as the main kind, in a tiny model alone.

    Raises:
        ConfigError: naming ``model.layer_kinds``.
    """
    if scenario.model.layer_kinds:
        rule = "has layers of several kinds, which are not replayed at full width"
        fix = "replay the tiny model, whose layers are all of the main kind"
        raise ConfigError("model.layer_kinds", scenario.model.name, rule, fix)


def _still_moe(model: ModelSpec, pairs: tuple[tuple[int, Any], ...]) -> tuple[tuple[int, Any], ...]:
    return tuple((layer, value) for layer, value in pairs if layer <= model.layers and model.is_moe(layer))


def _shrink_model(scenario: Scenario) -> ModelSpec:
    model, tp = scenario.model, scenario.mesh.tp
    parts = scenario.plan.head_parts(scenario.mesh.cp)
    sizes = _latent_sizes(model, tp, parts) if model.mla else _grouped_sizes(model, tp, parts)
    vocab = 16 * tp
    if model.vocab is not None and model.vocab % tp:
        vocab += 1
    sizes |= {"vocab": vocab, "dense_hidden": 4 * tp} | _layers(scenario)
    if model.experts is not None:
        sizes["expert_hidden"] = 4 * scenario.mesh.etp
        sizes["shared_hidden"] = _shared_width(scenario, sizes["expert_hidden"])
    return replace(model, **sizes, layer_kinds=(), extras=(), stored=())


def _shared_width(scenario: Scenario, expert_width: int) -> int | None:
    """Width of all shared experts: one that tp splits, or that of routed ones where they are routed too."""
    shared = scenario.model.shared_experts
    if not shared:
        return None
    return shared * expert_width if scenario.plan.shared_routed else 4 * scenario.mesh.tp


def _grouped_sizes(model: ModelSpec, tp: int, parts: int) -> dict[str, Any]:
    """Few heads that split over tp and ``parts`` as the model's do, sharing K/V heads by as much up to 4."""
    kv_heads = model.kv_heads or model.heads or 2 * tp
    share = min((model.heads or kv_heads) // kv_heads, 4)
    each = kv_heads // tp
    kept = tp * _kv_heads_each(each, parts) if each else kv_heads
    heads = lcm(kept * share, tp * parts)
    value_width = HEAD_WIDTH if model.v_head_dim == model.head_dim else HEAD_WIDTH + 2
    widths = {"head_dim": HEAD_WIDTH, "v_head_dim": value_width, "hidden": heads * HEAD_WIDTH}
    return widths | {"heads": heads, "kv_heads": kept}


def _kv_heads_each(each: int, parts: int) -> int:
    """K/V heads of a TP rank, few, and divided by ``parts`` (or dividing them) where ``each`` is."""
    if parts > 1 and each % parts == 0:
        return parts
    few = min(each, 2)
    return few if parts % few == 0 or parts == 1 else each


def _latent_sizes(model: ModelSpec, tp: int, parts: int) -> dict[str, Any]:
    """Latents and heads of a small MLA; every TP rank gets two heads, or as many as ``parts`` divide."""
    heads = tp * lcm(2, parts)
    return {
        "heads": heads,
        "kv_heads": heads,
        "hidden": 32,
        "kv_lora_rank": 8,
        "q_lora_rank": None if model.q_lora_rank is None else 12,
        "qk_nope_head_dim": HEAD_WIDTH,
        "qk_rope_head_dim": HEAD_WIDTH,
        "v_head_dim": HEAD_WIDTH + 2,
        "head_dim": None,
    }


def _layers(scenario: Scenario) -> dict[str, Any]:
    """Number and kinds of layers; both kinds stay where the model has both."""
    model, parts = scenario.model, scenario.mesh.stages * scenario.plan.chunks
    if model.layers <= MOST_LAYERS:
        return {}
    layers = min(model.layers, max(FEW_LAYERS, parts))
    if isinstance(model.dense_layers, int):
        all_dense = model.dense_layers == model.layers
        dense: int | tuple[int, ...] = layers if all_dense else min(model.dense_layers, 1)
        return {"layers": layers, "dense_layers": dense}
    return {"layers": layers, "dense_layers": _pattern(model, layers)}


def _pattern(model: ModelSpec, layers: int) -> tuple[int, ...]:
    """Dense ones among the first layers, the last of them made the kind that would be missing."""
    dense = {layer for layer in range(1, layers + 1) if not model.is_moe(layer)}
    if len(dense) == layers and model.moe_layers:
        dense.discard(layers)
    elif not dense and model.moe_layers < model.layers:
        dense.add(layers)
    return tuple(sorted(dense))


def _shrink_token(scenario: Scenario) -> Token:
    """The token and prompt; a shorter prompt keeps padding if there was some, and the followed GPU."""
    token, landing = scenario.token, scenario.landing
    replicas = scenario.mesh.dp
    if landing.padded * replicas <= MOST_ROWS:
        return token
    unit = landing.tp if landing.cp == 1 else 2 * landing.cp * landing.tp
    units = max(2, -(-max(LEAST_PROMPT, MOST_ROWS // replicas) // unit))
    prompt = max(1, min(token.prompt, units * unit) - (token.prompt % unit != 0))
    if scenario.is_last_position:
        return replace(token, prompt=prompt, replica=scenario.replica, position=prompt - 1, gpu=None)
    return replace(
        token, prompt=prompt, replica=scenario.replica, gpu=None, position=_on_home(scenario, prompt)
    )


def _on_home(scenario: Scenario, prompt: int) -> int:
    """The first position of a shorter prompt that lands on the token's GPU, else position 0."""
    landing = replace(scenario.landing, prompt=prompt)
    place = landing.place_of(0)
    for position in range(prompt - 1):
        place = landing.place_of(position)
        if place == scenario.landing.place_of(scenario.position):
            return position
    return 0

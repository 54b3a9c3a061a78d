"""The numbers page: what one hop does to real arrays, replayed on the mesh with a small model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.query.address import scenario_of
from app.reports.blocks import Block, heading, note, number_control, table
from tracer.errors import ConfigError
from tracer.proof.replay.hop_numbers import look
from tracer.scenario.step import mesh_line
from tracer.trip.hop import HopKind, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracer.proof.replay.hop_numbers import HopNumbers, Look
    from tracer.scenario.scenario import Scenario

SHOWN_VALUES = 4
SHOWN_ROWS = 16
MAX_GPUS, MAX_EXPERTS, MAX_TOP_K = 128, 512, 16


def hop_numbers_report(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks for the hop that the address names.

    Raises:
        ConfigError: for a hop that the trip does not have, or a scenario too large to replay.
    """
    scenario = scenario_of(query)
    _check_size(scenario)
    seen = look(scenario)
    text = query.get("hop", "")
    index = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1
    if index >= len(seen.hops):
        last = len(seen.hops) - 1
        raise ConfigError("hop", index, f"must be a hop from 0 to {last}", f"try {last}")
    hop = seen.hops[index]
    return {
        "title": mesh_line(scenario),
        "controls": [number_control("hop", f"Hop, 0 to {len(seen.hops) - 1}", index)],
        "blocks": _blocks(seen, hop),
    }


def _check_size(scenario: Scenario) -> None:
    """Refuse what would keep other readers waiting: every GPU, expert and pick is run on arrays."""
    model = scenario.model
    sizes = (
        ("world_size", scenario.mesh.world_size, MAX_GPUS),
        ("model.experts", model.experts or 0, MAX_EXPERTS),
        ("model.top_k", model.top_k or 0, MAX_TOP_K),
    )
    for field, size, most in sizes:
        if size > most:
            rule = f"is more than the {most} that this page runs"
            raise ConfigError(field, size, rule, "take a smaller one, or run tokentrip replay")


def _blocks(seen: Look, numbers: HopNumbers) -> list[Block]:
    hop, layer = numbers.hop, numbers.hop.layer
    place = f"layer {layer}, " if layer else ""
    blocks = [
        heading(f"Hop {numbers.index}: {place}{hop.kind.replace('_', ' ')}"),
        note(
            "A small model with this mesh, its kinds of layers and its placement was run on arrays. "
            "Picks that the scenario gives are kept; the small model's routers make the others."
        ),
        *_states(numbers),
    ]
    if hop.part is Part.ATTENTION:
        blocks += _attention(seen, layer)
    if hop.part is Part.MOE:
        blocks += _router(seen, layer)
    if hop.kind is HopKind.COMBINE:
        blocks += _relays(seen, layer)
    if layer:
        heads = ["hop", "a rank's tensor before", "after"]
        rows = [[kind, before, after] for kind, before, after in seen.layouts_of(layer)]
        blocks += [heading(f"The layouts of layer {layer}"), table("Layouts, hop by hop", heads, rows)]
    return blocks


def _values(values: Iterable[float]) -> str:
    shown = [f"{value:.3f}" for _, value in zip(range(SHOWN_VALUES + 1), values, strict=False)]
    return ", ".join(shown[:SHOWN_VALUES]) + (", …" if len(shown) > SHOWN_VALUES else "")


def _states(numbers: HopNumbers) -> list[Block]:
    """The token's rows on every GPU before the hop, and after each step of it."""
    if numbers.scene is None:
        return [note("Nothing of this token moves in this hop.")]
    last = len(numbers.scene.states) - 1
    rows = []
    for step, state in enumerate(numbers.scene.states):
        when = "before" if step == 0 else "after" if step == last else f"after step {step}"
        for held in state[:SHOWN_ROWS]:
            shape = " × ".join(map(str, held.shape))
            rows.append([f"GPU {held.rank}, {when}", f"[{shape}]", _values(held.values[0])])
    heads = ["where", "tensor on the GPU", f"this token's {numbers.scene.tensor}"]
    return [table("The token's numbers, GPU by GPU", heads, rows)]


def _attention(seen: Look, layer: int) -> list[Block]:
    """Partial attentions of the first head of each TP rank, with m, ℓ and the merge."""
    rows = []
    for each in seen.attention_of(layer):
        for part in each.partials:
            name = f"GPU {each.rank}, K/V of CP rank {part.source_cp}"
            rows.append([name, f"{part.top[0]:.3f}", f"{part.total[0]:.3f}", _values(part.out[0])])
        rows.append([f"GPU {each.rank}, merged", "", "", _values(each.merged[0])])
    heads = ["partial attention, first head", "m", "ℓ", "output"]
    return [heading("Partial attentions and their merge"), table("Partial attentions", heads, rows)]


def _router(seen: Look, layer: int) -> list[Block]:
    rows: list[Sequence[str]] = []
    for each in seen.router_of(layer):
        picked = zip(each.experts.tolist(), each.weights.tolist(), strict=True)
        rows += [
            [f"GPU {each.rank}, expert {expert}", f"{each.scores[expert]:.4f}", f"{weight:.4f}"]
            for expert, weight in picked
        ]
    heads = ["picked", "score", "weight"]
    return (
        [heading("What the router picked"), table("Router scores and weights", heads, rows)] if rows else []
    )


def _relays(seen: Look, layer: int) -> list[Block]:
    rows = [[f"GPU {held.rank}", _values(held.values[0])] for held in seen.relay_sums(layer)]
    heads = ["relay", "sum it sends home"]
    return [heading("What relays summed"), table("Sums of the relays", heads, rows)] if rows else []

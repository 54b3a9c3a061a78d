"""Batch: a census of drawn picks, as matrix, loads and savings, and EPLB before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from app.query import scenario_of
from app.reports.batch_balance import balance_blocks
from app.reports.blocks import (
    Block,
    chart,
    choice_control,
    counts,
    heading,
    note,
    number_control,
    range_control,
    table,
)
from app.reports.numbers import amount_of, whole_of
from layouts.charts.bars import Series
from layouts.charts.columns import columns_figure
from layouts.charts.matrix import MAX_RANKS, matrix_figure
from tracer.census.report import balance, busiest_link, crossings_per_token, saved
from tracer.census.take import need_numba, take_census
from tracer.picks.draws import DrawnPicks, popularity_of
from tracer.rank_places import islands_of
from tracer.timing.units import format_seconds
from tracer.trip_text import format_bytes, mesh_line

if TYPE_CHECKING:
    from tracer.census.result import Census
    from tracer.scenario import Scenario

TOKENS, MOST_TOKENS = 1_024, 65_536
POPULARITIES = {
    "uniform": "uniform: every expert alike",
    "zipf": "zipf: the r-th expert weighs r to the minus skew",
    "hot": "hot: one expert weighs skew times another",
}
PAIRS = 20


def batch_report(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks.

    Raises:
        ConfigError: for what is wrong with the scenario or a number, or when numba is not installed.
    """
    scenario = scenario_of(query)
    need_numba()
    tokens = whole_of(query, "tokens", TOKENS, most=MOST_TOKENS) or TOKENS
    kind, skew = query.get("popularity") or "zipf", amount_of(query, "skew", 0.5)
    experts = scenario.need_model().need("experts", "draw picks")
    weights = popularity_of(kind, experts, skew=skew)
    picks = DrawnPicks.of_model(scenario.need_model(), tokens, popularity=weights, seed=scenario.seed)
    census = take_census(scenario, picks)
    slots = whole_of(query, "slots", None, most=1 << 16)
    return {
        "title": mesh_line(scenario),
        "controls": _controls(tokens, kind, skew, slots),
        "blocks": [
            counts("The batch in all", _sums(census)),
            *_matrix(scenario, census),
            *_loads(census),
            *balance_blocks(scenario, picks, slots),
            *(note(text) for text in census.notes),
        ],
    }


def _controls(tokens: int, kind: str, skew: float, slots: int | None) -> list[Block]:
    return [
        number_control("tokens", f"Tokens, up to {MOST_TOKENS:,}", tokens, least=1),
        choice_control("popularity", "Which experts are liked", kind, POPULARITIES.items()),
        range_control("skew", f"Skew: {skew:g}", skew, most=8 if kind == "hot" else 2, step="0.1"),
        number_control("slots", "Expert slots for EPLB", slots, least=1),
    ]


def _times(value: float | None) -> str:
    return "no load" if value is None else f"{value:.3g}×"


def _sums(census: Census) -> list[tuple[str, str]]:
    out, back = census.bytes_by_tier("dispatch"), census.bytes_by_tier("combine")
    word = census.scenario.cluster.island_word
    link = busiest_link(census)
    whose = "" if link is None else f", GPU {link['rank']}"
    busy = "none" if link is None else format_seconds(link["seconds"])
    return [
        ("busiest GPU over the mean", _times(balance(census.gpu_load)["max_over_mean"])),
        ("busiest expert over the mean", _times(balance(census.load_by_expert)["max_over_mean"])),
        (f"{word} crossings a token", f"{crossings_per_token(census):.3g}"),
        ("dispatched over NVLink", format_bytes(out["nvlink"])),
        ("dispatched over InfiniBand", format_bytes(out["ib"])),
        ("combined over NVLink", format_bytes(back["nvlink"])),
        ("combined over InfiniBand", format_bytes(back["ib"])),
        (f"busiest link in dispatch{whose}", busy),
    ]


def _matrix(scenario: Scenario, census: Census) -> list[Block]:
    """Messages of dispatch from GPU to GPU; too many GPUs are only listed."""
    world, said = scenario.mesh.world_size, saved(census)
    rows = [
        ["picks that leave their GPU", f"{said['picks']:,}"],
        ["saved by one copy a GPU", f"{said['by_gpu']:,}"],
        [f"saved by one copy a {scenario.cluster.island_word}", f"{said['by_island']:,}"],
    ]
    drawn: list[Block] = []
    if world <= MAX_RANKS:
        islands = islands_of(scenario.cluster, np.arange(world)).astype(np.int64)
        figure = matrix_figure(census.sent, islands, "messages")
        drawn = [
            chart("Messages of dispatch from GPU to GPU, islands as bands", figure, height=560),
            heading("The pairs that say most"),
            table("Busiest pairs", ["from → to", "messages", "link"], _pairs(census, islands)),
        ]
    else:
        drawn = [note(f"The matrix is drawn for up to {MAX_RANKS} GPUs; this mesh has {world:,}.")]
    return [
        heading("Who sends to whom in dispatch, relays included"),
        *drawn,
        heading("What sending one copy saves"),
        table("Saved messages", ["", "messages"], rows),
    ]


def _pairs(census: Census, islands: np.ndarray[Any, np.dtype[np.int64]]) -> list[list[str]]:
    sent = census.sent
    places = np.argsort(sent, axis=None, kind="stable")[::-1][:PAIRS]
    pairs = zip(*np.unravel_index(places, sent.shape), strict=True)
    return [
        [f"GPU {a} → {b}", f"{sent[a, b]:,}", "NVLink" if islands[a] == islands[b] else "InfiniBand"]
        for a, b in pairs
        if sent[a, b]
    ]


def _loads(census: Census) -> list[Block]:
    experts, gpus = census.load_by_expert.tolist(), census.gpu_load.tolist()
    colour = "var(--token)"
    blocks = [
        heading("Load of every expert"),
        chart("Picks of every expert", columns_figure([Series("picks", experts, colour)], "expert", "picks")),
        table(
            "Loads of experts",
            ["expert", "picks"],
            [[f"expert {e}", f"{n:,}"] for e, n in enumerate(experts)],
        ),
    ]
    if len(gpus) > MAX_RANKS:
        return blocks
    relayed = census.relayed.tolist()
    rows = [[f"GPU {g}", f"{n:,}", f"{relayed[g]:,}"] for g, n in enumerate(gpus)]
    return [
        *blocks,
        heading("Load of every GPU"),
        chart(
            "Picks that every GPU works on", columns_figure([Series("picks", gpus, colour)], "GPU", "picks")
        ),
        table("Loads of GPUs", ["GPU", "picks", "relayed for others"], rows),
    ]

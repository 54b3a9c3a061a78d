"""Batch: a census of picks, drawn or sent, as matrix, loads and savings, and EPLB before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from app.query.address import scenario_of
from app.reports.batch.balance import balance_blocks
from app.reports.batch.counted import counted_blocks, counts_sent
from app.reports.batch.permutation import permutation_blocks
from app.reports.batch.picks import AT_ONCE, AT_ONCE_PICKS, AskedPicks, sent_picks
from app.reports.blocks import Block, alert, chart, counts, heading, job, note, table
from layouts.charts.bars import Series, columns_figure
from layouts.charts.matrix import MAX_RANKS, matrix_figure
from tracer.batch.census.report import (
    balance,
    busiest_census_link,
    crossings_per_token,
    removes_doubles,
    saved,
)
from tracer.batch.census.run import part_of
from tracer.batch.census.take import need_numba, take_census
from tracer.display import format_bytes, format_seconds
from tracer.errors import ConfigError
from tracer.mesh.cluster import nvlink_domains_of
from tracer.scenario.step import mesh_line

if TYPE_CHECKING:
    from tracer.batch.census.result import Census
    from tracer.batch.census.run import Progress
    from tracer.batch.picks.source import InMemory, PickSource
    from tracer.scenario.scenario import Scenario

PAIRS = 20


def batch_report(
    query: dict[str, str], sent: InMemory | None = None, *, progress: Progress | None = None
) -> dict[str, Any]:
    """The page's controls and blocks; picks are drawn, or those of a file that was sent.

    What is wrong with the file is said beside its control, over the drawn picks. More than ``AT_ONCE``
    drawn tokens, or ``AT_ONCE_PICKS`` picks, are only counted where somebody watches the ``progress``.

    Raises:
        ConfigError: for what is wrong with the scenario or a number, or when numba is not installed.
    """
    scenario, asked = scenario_of(query), AskedPicks.of(query)
    need_numba()
    scenario.model.need("experts", "draw picks")
    wrong, word = None, "picks"
    if sent is not None:
        try:
            if counts_sent(scenario, sent):
                word = "counts"
                blocks = counted_blocks(scenario, sent, asked.slots)
            else:
                blocks = _counted(scenario, sent_picks(scenario, sent), asked, progress, check_repeats=True)
        except ConfigError as error:
            wrong = error
    if sent is None or wrong is not None:
        blocks = _drawn(scenario, asked, progress)
    return {
        "title": mesh_line(scenario) + (f" · {word} of {sent.name}" if sent and not wrong else ""),
        "controls": asked.controls(sent, wrong),
        "blocks": blocks,
    }


def _drawn(scenario: Scenario, asked: AskedPicks, progress: Progress | None) -> list[Block]:
    """The census of drawn picks; a batch too large to wait for is offered as a job instead."""
    asked.check(scenario)
    picks = asked.drawn(scenario)
    short = asked.tokens <= AT_ONCE and asked.work(scenario) <= AT_ONCE_PICKS
    if short or progress is not None:
        try:
            return _counted(scenario, picks, asked, progress)
        except ConfigError as error:
            return [alert(error)]
    said = f"More than {AT_ONCE:,} tokens are counted in the background."
    if asked.tokens <= AT_ONCE:
        said = f"What costs as much as {asked.work(scenario):,} plain picks is counted in the background."
    command = f"`tokentrip census SCENARIO --tokens {asked.tokens}`"
    without = f"{said} This server names no folder for such jobs (TOKENTRIP_JOBS); {command} counts them."
    return [job(said, f"Count {asked.tokens:,} tokens", without)]


def _counted(
    scenario: Scenario,
    picks: PickSource,
    asked: AskedPicks,
    progress: Progress | None,
    *,
    check_repeats: bool = False,
) -> list[Block]:
    """The census of a batch, and the same picks with balanced experts once slots are asked for."""
    walks = 1 if asked.slots is None else 3
    first = progress and part_of(progress, 0, walks)
    census = take_census(scenario, picks, check_repeats=check_repeats, progress=first)
    return [
        counts("The batch in all", _sums(census)),
        *_matrix(scenario, census),
        *_loads(census),
        *permutation_blocks(scenario, picks, census.layers[0]),
        *balance_blocks(scenario, picks, asked.slots, progress),
        *(note(text) for text in census.notes),
    ]


def _times(value: float | None) -> str:
    return "no load" if value is None else f"{value:.3g}×"


def _sums(census: Census) -> list[tuple[str, str]]:
    out, back = census.bytes_by_tier("dispatch"), census.bytes_by_tier("combine")
    word = census.scenario.cluster.domain_word
    link = busiest_census_link(census)
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
    """Dispatch messages from GPU to GPU as a matrix; too many GPUs are only listed."""
    world, said = scenario.mesh.world_size, saved(census)
    rows = [
        ["picks that leave their GPU", f"{said['picks']:,}"],
    ]
    if removes_doubles(census):
        rows += [
            ["saved by one copy a GPU", f"{said['by_gpu']:,}"],
            [f"saved by one copy a {scenario.cluster.domain_word}", f"{said['by_island']:,}"],
        ]
    drawn: list[Block] = []
    if world <= MAX_RANKS:
        nvlink_domains = nvlink_domains_of(scenario.cluster, np.arange(world)).astype(np.int64)
        figure = matrix_figure(census.sent, nvlink_domains, "messages")
        drawn = [
            chart("Messages of dispatch from GPU to GPU, islands as bands", figure, height=560),
            heading("The pairs that say most"),
            table("Busiest pairs", ["from → to", "messages", "link"], _pairs(census, nvlink_domains)),
        ]
    else:
        drawn = [note(f"The matrix is drawn for up to {MAX_RANKS} GPUs; this mesh has {world:,}.")]
    return [
        heading("Who sends to whom in dispatch, relays included"),
        *drawn,
        heading("What sending one copy saves"),
        table("Saved messages", ["", "messages"], rows),
    ]


def _pairs(census: Census, nvlink_domains: np.ndarray[Any, np.dtype[np.int64]]) -> list[list[str]]:
    sent = census.sent
    places = np.argsort(sent, axis=None, kind="stable")[::-1][:PAIRS]
    pairs = zip(*np.unravel_index(places, sent.shape), strict=True)
    return [
        [
            f"GPU {a} → {b}",
            f"{sent[a, b]:,}",
            "NVLink" if nvlink_domains[a] == nvlink_domains[b] else "InfiniBand",
        ]
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

"""The batch sorted by expert: a picture of its first tokens, and one GPU's grouped GEMM against a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.reports.blocks import Block, alert, heading, note, picture, table
from layouts.pictures.permutation_svg import permutation_svg
from tracer.batch.permutation import busiest_gpu, permute
from tracer.batch.picks.source import WithShared
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.batch.grouped_gemm import GemmWork
    from tracer.batch.permutation import GpuRows
    from tracer.batch.picks.source import PickSource
    from tracer.scenario.scenario import Scenario

DRAWN_PICKS = 32
COUNTED_TOKENS = 1 << 16
TITLE = "Sorted by expert: one grouped GEMM instead of a loop"


def permutation_blocks(scenario: Scenario, picks: PickSource, layer: int) -> list[Block]:
    """The first layer of the picks, which is ``layer`` of the model."""
    experts = scenario.model.need("experts", "sort by expert") + len(scenario.always_picked)
    if scenario.always_picked:
        picks = WithShared(picks, tuple(scenario.always_picked))
    shown = min(picks.tokens, max(1, DRAWN_PICKS // picks.top_k))
    counted = min(picks.tokens, COUNTED_TOKENS)
    try:
        found = permute(picks.read(0, 0, shown), experts)
        load = permute(picks.read(0, 0, counted), experts).counts
        held = busiest_gpu(scenario, layer, load)
    except ConfigError as error:
        return [heading(TITLE), alert(error)]
    name = f"The first {shown} tokens' picks, sorted by expert"
    return [heading(TITLE), picture(name, permutation_svg(found, "page")), *_work(held, counted)]


def _work(held: GpuRows, tokens: int) -> list[Block]:
    idle = int(np.count_nonzero(held.rows == 0))
    rows = [_row("a loop over experts", held.loop), _row("one grouped GEMM", held.grouped)]
    return [
        table(
            "The busiest GPU's first expert GEMM, in 128 × 128 tiles on 132 SMs",
            ["", "launches", "tiles", "waves", "SM time used", "rows of tiles in use"],
            rows,
        ),
        note(
            f"EP rank {held.ep_rank} holds {len(held.experts)} experts, {idle} of them without a row, and "
            f"{int(held.rows.sum()):,} rows of the first {tokens:,} tokens; {held.columns:,} columns."
        ),
    ]


def _row(name: str, work: GemmWork) -> list[str]:
    return [
        name,
        f"{work.launches:,}",
        f"{work.tiles:,}",
        f"{work.waves:,}",
        f"{work.fill:.1%}",
        f"{work.useful_rows:.1%}",
    ]

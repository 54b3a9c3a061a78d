"""EPLB on a batch: replicate and pack the experts, then count the same picks again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.reports.blocks import Block, alert, chart, heading, note, table
from layouts.charts.bars import Series, columns_figure
from layouts.charts.matrix import MAX_RANKS
from tracer.batch.eplb import one_more_slots
from tracer.batch.eplb_scenario import rebalanced
from tracer.display import format_bytes
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.batch.census.run import Progress
    from tracer.batch.eplb_scenario import Rebalanced
    from tracer.batch.picks.source import PickSource
    from tracer.scenario.scenario import Scenario

HEADS = ("", "busiest GPU over the mean", "worst layer", "NVLink", "InfiniBand")


def balance_blocks(
    scenario: Scenario, picks: PickSource, slots: int | None, progress: Progress | None = None
) -> list[Block]:
    """Loads before and after balancing, once slots are given: the batch is counted twice more."""
    title = balance_title(scenario, slots, "balance this batch")
    if slots is None:
        return title
    try:
        found = rebalanced(scenario, picks, slots=slots, progress=progress and _later(progress))
    except ConfigError as error:
        return [*title, alert(error)]
    return [*title, *_compared(found)]


def balance_title(scenario: Scenario, slots: int | None, what: str) -> list[Block]:
    """The heading of a balance; without slots it also says how many would do ``what``."""
    experts = scenario.model.need("experts", "balance experts")
    if slots is not None:
        return [heading(f"EPLB: {slots:,} slots for {experts:,} experts")]
    enough = one_more_slots(experts, scenario.mesh.ep)
    hint = f"Give expert slots above to {what}, such as {enough:,}: one more per GPU."
    return [heading("EPLB: replicate and pack experts by load"), note(hint)]


def _later(progress: Progress) -> Progress:
    """The progress of the second and third of three counts."""
    return lambda done, blocks: progress(blocks // 2 + done, blocks // 2 * 3)


def _compared(found: Rebalanced) -> list[Block]:
    report = found.to_dict()
    rows = [[name, *_part(report[name])] for name in ("before", "after")]
    planned = report["planned"]
    rows.append(["plan", f"{planned['gpu_imbalance']:.4f}", f"{planned['worst_layer']:.4f}", "", ""])
    loads = [report[name]["gpu_load"] for name in ("before", "after")]
    series = [
        Series("before", loads[0], "var(--soft)", pattern="/"),
        Series("after", loads[1], "var(--token)"),
    ]
    drawn = [chart("Load of every GPU before and after", columns_figure(series, "GPU", "picks"))]
    return [
        *(drawn if len(loads[0]) <= MAX_RANKS else []),
        table("EPLB before and after", HEADS, rows),
        note(
            f"{found.replication.policy} policy. Bytes of dispatch and combine, all GPUs and layers; the "
            "figures of GPUs are means over layers. The plan shares loads evenly over replicas; tokens go to "
            "the nearest one."
        ),
    ]


def _part(part: dict[str, Any]) -> list[str]:
    """Imbalance and bytes of one census, dispatch and combine together, as the command line says them."""
    both = [part["bytes_by_tier"][tier] + part["combine_bytes_by_tier"][tier] for tier in ("nvlink", "ib")]
    return [f"{part['gpu_imbalance']:.4f}", f"{part['worst_layer']:.4f}", *map(format_bytes, both)]

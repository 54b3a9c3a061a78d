"""Expert counts that are sent, in place of picks: loads and imbalance, and EPLB by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.reports.batch.balance import balance_title
from app.reports.batch.picks import MAX_BYTES
from app.reports.blocks import Block, alert, chart, counts, heading, note, table
from layouts.charts.bars import Series, columns_figure
from layouts.charts.matrix import MAX_RANKS
from tracer.batch.counts.files import holds_counts, read_counts
from tracer.batch.counts.load_census import LoadCensus, load_census, rebalanced_counts
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from tracer.batch.picks.source import InMemory
    from tracer.scenario.scenario import Scenario


def counts_sent(scenario: Scenario, sent: InMemory) -> bool:
    """Whether a file holds counts and no picks; one that cannot be read is left to the reader of picks."""
    try:
        return len(sent.data) <= MAX_BYTES and holds_counts(sent, scenario)
    except ConfigError:
        return False


def counted_blocks(scenario: Scenario, sent: InMemory, slots: int | None) -> list[Block]:
    """The loads of a file of counts, and once slots are given those after EPLB.

    Raises:
        ConfigError: for counts that do not fit the model.
    """
    found = load_census(scenario, read_counts(sent, scenario))
    blocks = [
        counts("The recorded counts", _sums(found)),
        heading("Load of every expert"),
        chart("Picks of every expert", _bars("picks", found.counts.counts.sum(0).tolist(), "expert")),
    ]
    loads = found.gpu_load.sum(0).tolist()
    if len(loads) <= MAX_RANKS:
        blocks += [
            heading("Load of every EP rank"),
            chart("Picks of every EP rank", _bars("picks", loads, "EP rank")),
        ]
    return [*blocks, *_balanced(scenario, found, slots), *(note(text) for text in found.notes)]


def _bars(name: str, values: list[float], unit: str) -> dict[str, object]:
    return columns_figure([Series(name, values, "var(--token)")], unit, "picks")


def _sums(found: LoadCensus) -> list[tuple[str, str]]:
    by_layer = found.imbalance
    return [
        ("picks", f"{found.counts.picks:,.0f}"),
        ("MoE layers", f"{len(found.counts.layers):,}"),
        ("busiest GPU over the mean", f"{by_layer.mean():.3g}×"),
        ("worst layer", f"{by_layer.max():.3g}×"),
    ]


def _balanced(scenario: Scenario, found: LoadCensus, slots: int | None) -> list[Block]:
    title = balance_title(scenario, slots, "balance by these counts")
    if slots is None:
        return title
    try:
        after = rebalanced_counts(scenario, found.counts, slots=slots).after
    except ConfigError as error:
        return [*title, alert(error)]
    rows = [
        [name, f"{each.imbalance.mean():.4f}", f"{each.imbalance.max():.4f}"]
        for name, each in (("before", found), ("after", after))
    ]
    return [*title, table("EPLB before and after", ("", "busiest GPU over the mean", "worst layer"), rows)]

"""Orders of the axes on the traffic page: two axes swapped, two orders beside each other, all ranked."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from app.reports.blocks import Block, action, alert, buttons, chart, heading, note, table
from app.reports.traffic.sums import lines_of, sums_of
from layouts.charts.bars import Series, bars_figure
from tracer.display import format_bytes, format_seconds
from tracer.errors import ConfigError
from tracer.timing.pass_verdict import not_told_apart
from tracer.traffic.orders import Orders, swapped, with_order
from tracer.traffic.traffic import CommVolume, comm_volume

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

HEADS = ("#", "order", "over IB", "time", "by time", "why")


def _use(order: str, own: str) -> Block:
    """A button that changes the mesh to an order and keeps the old one for comparison."""
    return action("Use this order", {"mesh.order": order, "against": own}, says=f"Use this order, {order}")


def swaps_to_try(scenario: Scenario) -> list[Block]:
    """A button for each pair of axes that are larger than 1."""
    own = "-".join(scenario.mesh.dense.names)
    large = [name for name in scenario.mesh.dense.names if scenario.mesh.size_of(name) > 1]
    tries = [
        action(f"swap {one} and {other}", {"against": swapped(own, one, other)})
        for one, other in combinations(large, 2)
    ]
    return [heading("Swap two axes and see the difference"), buttons("Swap two axes", tries)] if tries else []


def swapped_blocks(traffic: CommVolume, order: str) -> list[Block]:
    """Both orders line by line; the engine lays the ranks out anew."""
    own = "-".join(traffic.scenario.mesh.dense.names)
    title = heading(f"{own} beside {order}")
    try:
        other = comm_volume(with_order(traffic.scenario, order))
    except ConfigError as error:
        return [title, alert(error)]
    pairs = zip([*sums_of(traffic), *lines_of(traffic)], [*sums_of(other), *lines_of(other)], strict=True)
    rows = [
        [name, written(one), written(two), _ratio(one, two)] for (name, one, written), (_, two, _) in pairs
    ]
    differs = [i for i, row in enumerate(rows) if row[1] != row[2]]
    return [
        title,
        table("Two orders", ["", own, order, "change"], rows, marked=differs),
        buttons("The other order", [_use(order, own)]),
    ]


def _ratio(one: float, two: float) -> str:
    """The factor by which a figure changes."""
    if f"{one:.9g}" == f"{two:.9g}":
        return "same"
    return f"{two / one:.3g}×" if one else "new"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def orders_blocks(orders: Orders) -> list[Block]:
    """Every order, least over InfiniBand first; a button lays the mesh out in one."""
    ranked = orders.ranked
    series = [
        Series("InfiniBand", [entry.ib_bytes for entry in ranked], "var(--ib)", pattern="/"),
        Series("NVLink", [entry.nvlink_bytes for entry in ranked], "var(--nvlink)"),
    ]
    rows = [
        [
            f"{place}{' (this mesh)' if entry.is_given else ''}",
            entry.order,
            format_bytes(entry.ib_bytes),
            format_seconds(entry.seconds),
            str(entry.rank_by_time),
            entry.why,
        ]
        for place, entry in enumerate(ranked, 1)
    ]
    given = [i for i, entry in enumerate(ranked) if entry.is_given]
    own = "-".join(orders.scenario.mesh.dense.names)
    uses = [None if entry.is_given else _use(entry.order, own) for entry in ranked]
    names = [entry.order for entry in ranked]
    figure = bars_figure(names, series, "bytes per GPU and pass")
    return [
        heading("Every order, ranked by what crosses islands"),
        chart("Bytes a GPU and pass of every order", figure, height=120 + 26 * len(ranked)),
        table("Every order", HEADS, rows, marked=given, actions=uses),
        note(_sentence(not_told_apart({entry.order: entry.seconds for entry in ranked}))),
        *(note(f"Refused: {order}: {why}") for order, why in orders.refused),
    ]

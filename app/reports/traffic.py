"""Traffic: what each axis sends, with its formula; orders and contracts of the experts side by side."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, Any

from app.query import scenario_of
from app.reports.blocks import (
    Block,
    action,
    alert,
    buttons,
    chart,
    choice_control,
    counts,
    heading,
    note,
    number_control,
    table,
)
from app.reports.numbers import whole_of
from layouts.charts.bars import Series, bars_figure
from tracer.contracts import compare_contracts
from tracer.errors import ConfigError
from tracer.expected_traffic import ExpectedTraffic, expected_traffic
from tracer.orders import Orders, rank_orders, swapped, with_order
from tracer.step_rows import pass_words, step_tokens, with_tokens
from tracer.timing.units import format_seconds
from tracer.traffic_text import HEADINGS, traffic_footer, traffic_rows
from tracer.trip_text import format_bytes, mesh_line

if TYPE_CHECKING:
    from tracer.scenario import Scenario


MAX_RANKED = 1 << 16
UNRANKED = f"Orders are ranked here for up to {MAX_RANKED:,} GPUs; `tokentrip orders` ranks larger meshes."
UNCOMPARED = f"Contracts are compared here for up to {MAX_RANKED:,} GPUs."
Sum = tuple[str, float, Callable[[float], str]]
"""A figure's name, its value, and how it is written."""


def traffic_report(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks.

    Raises:
        ConfigError: for what is wrong with the scenario, or an order that the mesh refuses.
    """
    scenario = scenario_of(query)
    tokens = whole_of(query, "tokens", None)
    if tokens is not None:
        scenario = with_tokens(scenario, tokens)
    traffic, orders = expected_traffic(scenario), _ranked(scenario)
    against = query.get("against", "")
    return {
        "title": mesh_line(scenario),
        "controls": _controls(scenario, orders, tokens, against),
        "blocks": [
            *_axes(traffic),
            *_swaps_to_try(scenario),
            *(_swapped(traffic, against) if against else []),
            *(_orders(orders) if orders else [note(UNRANKED)]),
            *(_contracts(scenario) if orders else [note(UNCOMPARED)]),
        ],
    }


def _controls(scenario: Scenario, orders: Orders | None, tokens: int | None, against: str) -> list[Block]:
    own = "-".join(scenario.mesh.dense.names)
    ranked = orders.ranked if orders else ()
    names = [entry.order for entry in ranked]
    mine = [(name, name) for name in dict.fromkeys([own, *names])]
    others = [(entry.order, f"{entry.order}{_swaps(own, entry.order)}") for entry in ranked]
    known = against in names or not against
    words = "Requests a replica decodes in a step" if scenario.decodes else "Tokens a replica"
    return [
        number_control("tokens", words, tokens or step_tokens(scenario), least=1),
        choice_control("mesh.order", "Order of the axes, fastest first", own, mine),
        choice_control(
            "against",
            "Beside another order",
            against,
            [("", "none"), *others, *([] if known else [(against, against)])],
        ),
    ]


def _ranked(scenario: Scenario) -> Orders | None:
    """Every order; None for a mesh so large that listing its groups 24 times keeps a reader waiting."""
    return rank_orders(scenario) if scenario.mesh.world_size <= MAX_RANKED else None


def _swaps(own: str, other: str) -> str:
    moved = [a for a, b in zip(own.split("-"), other.split("-"), strict=True) if a != b]
    return f" (swaps {moved[0]} and {moved[1]})" if len(moved) == 2 else " (the same)" if not moved else ""


def _name(axis: str, part: str) -> str:
    return f"{axis.upper()} {part.replace('_', ' ')}"


def _axes(traffic: ExpectedTraffic) -> list[Block]:
    lines = traffic.lines
    names = [f"{_name(line.axis, line.part)}, a {line.per}" for line in lines]
    series = [
        Series("NVLink", [line.nvlink_bytes for line in lines], "var(--nvlink)"),
        Series("InfiniBand", [line.ib_bytes for line in lines], "var(--ib)", pattern="/"),
    ]
    rows = [[_name(row[0], row[1]), *row[2:]] for row in traffic_rows(traffic)]
    figure = bars_figure(names, series, "bytes a GPU sends")
    return [
        counts(
            f"One {pass_words(traffic.scenario)}, averaged over all GPUs",
            [(s, f(v)) for s, v, f in _sums(traffic)],
        ),
        heading(f"Axis by axis, in {traffic.scenario.phase}"),
        chart("Bytes a GPU sends, axis by axis, NVLink and InfiniBand", figure, height=120 + 40 * len(lines)),
        table("What each axis sends", ["axis", *HEADINGS[2:]], rows),
        *(note(line) for line in traffic_footer(traffic)[:2]),
    ]


def _bytes(value: float) -> str:
    return format_bytes(round(value))


def _sums(traffic: ExpectedTraffic) -> list[Sum]:
    word = "step" if traffic.scenario.decodes else "pass"
    return [
        (f"over InfiniBand, a GPU and {word}", traffic.ib_bytes_per_pass, _bytes),
        (f"over NVLink, a GPU and {word}", traffic.nvlink_bytes_per_pass, _bytes),
        ("when hops follow one another", traffic.seconds_per_pass, format_seconds),
    ]


def _lines(traffic: ExpectedTraffic) -> list[Sum]:
    found: list[Sum] = []
    for line in traffic.lines:
        name = f"{_name(line.axis, line.part)}, a {line.per}"
        found.append((f"{name}: InfiniBand", line.ib_bytes, _bytes))
        found.append((f"{name}: time", line.seconds, format_seconds))
    return found


def _use(order: str, own: str) -> Block:
    """A button that lays the mesh out in an order, with the one it had beside it."""
    return action("Use this order", {"mesh.order": order, "against": own}, says=f"Use this order, {order}")


def _swaps_to_try(scenario: Scenario) -> list[Block]:
    """A button for each pair of axes that are larger than 1."""
    own = "-".join(scenario.mesh.dense.names)
    large = [name for name in scenario.mesh.dense.names if scenario.mesh.size_of(name) > 1]
    tries = [
        action(f"swap {one} and {other}", {"against": swapped(own, one, other)})
        for one, other in combinations(large, 2)
    ]
    return [heading("Swap two axes and see the difference"), buttons("Swap two axes", tries)] if tries else []


def _swapped(traffic: ExpectedTraffic, order: str) -> list[Block]:
    """Both orders line by line; the engine lays the ranks out anew."""
    own = "-".join(traffic.scenario.mesh.dense.names)
    title = heading(f"{own} beside {order}")
    try:
        other = expected_traffic(with_order(traffic.scenario, order))
    except ConfigError as error:
        return [title, alert(error)]
    pairs = zip([*_sums(traffic), *_lines(traffic)], [*_sums(other), *_lines(other)], strict=True)
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
    """What a figure becomes, as a factor."""
    if f"{one:.9g}" == f"{two:.9g}":
        return "same"
    return f"{two / one:.3g}×" if one else "new"


def _contracts(scenario: Scenario) -> list[Block]:
    """The ways to run a MoE block beside each other, with and without de-duplication."""
    if not scenario.need_model().moe_layers:
        return []
    compared = compare_contracts(scenario)
    # Pulled weights do not depend on the tokens: beside them nothing else would be seen.
    entries = [entry for entry in compared.entries if entry.name != "dwdp"]
    series = [
        Series("NVLink", [entry.nvlink_bytes for entry in entries], "var(--nvlink)"),
        Series("InfiniBand", [entry.ib_bytes for entry in entries], "var(--ib)", pattern="/"),
    ]
    figure = bars_figure([entry.name for entry in entries], series, "bytes a GPU and MoE layer")
    return [
        heading("TP, EP, all rows or weights: what a MoE layer moves"),
        chart(
            "Bytes a GPU moves in a MoE layer when tokens or sums move",
            figure,
            height=120 + 40 * len(entries),
        ),
        table("The MoE contracts", compared.headings(), compared.rows()),
        note(compared.note),
    ]


HEADS = ("#", "order", "over IB", "time", "by time", "why")


def _orders(orders: Orders) -> list[Block]:
    ranked = orders.ranked
    series = [
        Series("InfiniBand", [entry.ib_bytes for entry in ranked], "var(--ib)", pattern="/"),
        Series("NVLink", [entry.nvlink_bytes for entry in ranked], "var(--nvlink)"),
    ]
    rows = [
        [
            f"{place}{' (this mesh)' if entry.is_given else ''}",
            entry.order,
            format_bytes(round(entry.ib_bytes)),
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
    figure = bars_figure(names, series, "bytes a GPU and pass")
    return [
        heading("Every order, ranked by what crosses islands"),
        chart("Bytes a GPU and pass of every order", figure, height=120 + 26 * len(ranked)),
        table("Every order", HEADS, rows, marked=given, actions=uses),
        *(note(f"Refused: {order}: {why}") for order, why in orders.refused),
    ]

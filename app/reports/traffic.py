"""Traffic: what each axis sends, with its formula; every order ranked; two orders beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.query import scenario_of
from app.reports.blocks import (
    Block,
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
from tracer.errors import ConfigError
from tracer.expected_traffic import ExpectedTraffic, expected_traffic, with_tokens
from tracer.orders import Orders, rank_orders, with_order
from tracer.timing.units import format_seconds
from tracer.traffic_text import HEADINGS, traffic_footer, traffic_rows
from tracer.trip_text import format_bytes, mesh_line

if TYPE_CHECKING:
    from tracer.scenario import Scenario


def traffic_report(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks.

    Raises:
        ConfigError: for what is wrong with the scenario, or an order that the mesh refuses.
    """
    scenario = scenario_of(query)
    tokens = whole_of(query, "tokens", None)
    if tokens is not None:
        scenario = with_tokens(scenario, tokens)
    traffic, orders, why = expected_traffic(scenario), *_ranked(scenario)
    against = query.get("against", "")
    return {
        "title": mesh_line(scenario),
        "controls": _controls(scenario, orders, tokens, against),
        "blocks": [
            *_axes(traffic),
            *(_swapped(traffic, against) if against else []),
            *(_orders(orders) if orders else [note(f"Orders are not ranked: {why}.")]),
        ],
    }


def _controls(scenario: Scenario, orders: Orders | None, tokens: int | None, against: str) -> list[Block]:
    own = "-".join(scenario.mesh.dense.names)
    ranked = orders.ranked if orders else ()
    names = [entry.order for entry in ranked]
    mine = [(name, name) for name in dict.fromkeys([own, *names])]
    others = [(entry.order, f"{entry.order}{_swaps(own, entry.order)}") for entry in ranked]
    known = against in names or not against
    return [
        number_control("tokens", "Tokens a replica", tokens or scenario.token.prompt, least=1),
        choice_control("mesh.order", "Order of the axes, fastest first", own, mine),
        choice_control(
            "against",
            "Beside another order",
            against,
            [("", "none"), *others, *([] if known else [(against, against)])],
        ),
    ]


def _ranked(scenario: Scenario) -> tuple[Orders | None, str]:
    """(every order or None, why there is none: too many ranks to lay out in each)."""
    try:
        return rank_orders(scenario), ""
    except ConfigError as error:
        return None, str(error)


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
        counts("One forward pass, averaged over all GPUs", _sums(traffic)),
        heading("Axis by axis"),
        chart("Bytes a GPU sends, axis by axis, NVLink and InfiniBand", figure, height=120 + 40 * len(lines)),
        table("What each axis sends", ["axis", *HEADINGS[2:]], rows),
        *(note(line) for line in traffic_footer(traffic)[:2]),
    ]


def _sums(traffic: ExpectedTraffic) -> list[tuple[str, str]]:
    return [
        ("over InfiniBand, a GPU and pass", format_bytes(round(traffic.ib_bytes_per_pass))),
        ("over NVLink, a GPU and pass", format_bytes(round(traffic.nvlink_bytes_per_pass))),
        ("when hops follow one another", format_seconds(traffic.seconds_per_pass)),
    ]


def _swapped(traffic: ExpectedTraffic, order: str) -> list[Block]:
    """Both orders line by line; the engine lays the ranks out anew."""
    other = expected_traffic(with_order(traffic.scenario, order))
    rows = [[label, one, two] for (label, one), (_, two) in zip(_sums(traffic), _sums(other), strict=True)]
    for one, two in zip(traffic.lines, other.lines, strict=True):
        name = f"{_name(one.axis, one.part)}, a {one.per}"
        rows.append(
            [f"{name}: InfiniBand", format_bytes(round(one.ib_bytes)), format_bytes(round(two.ib_bytes))]
        )
        rows.append([f"{name}: time", format_seconds(one.seconds), format_seconds(two.seconds)])
    own = "-".join(traffic.scenario.mesh.dense.names)
    differs = [i for i, row in enumerate(rows) if row[1] != row[2]]
    return [
        heading(f"{own} beside {order}"),
        table("Two orders", ["", own, order], rows, marked=differs),
    ]


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
    names = [entry.order for entry in ranked]
    figure = bars_figure(names, series, "bytes a GPU and pass")
    return [
        heading("Every order, ranked by what crosses islands"),
        chart("Bytes a GPU and pass of every order", figure, height=120 + 26 * len(ranked)),
        table("Every order", ["#", "order", "over IB", "time", "by time", "why"], rows, marked=given),
        *(note(f"Refused: {order}: {why}") for order, why in orders.refused),
    ]

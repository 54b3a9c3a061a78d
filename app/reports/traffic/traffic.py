"""Traffic: what each axis sends, with its formula; orders and contracts of the experts side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.query.address import scenario_of
from app.reports.blocks import (
    Block,
    alert,
    chart,
    choice_control,
    counts,
    heading,
    note,
    number_control,
    table,
)
from app.reports.numbers import whole_of
from app.reports.traffic.orders import orders_blocks, swapped_blocks, swaps_to_try
from app.reports.traffic.sums import line_name, sums_of
from layouts.charts.bars import Series, bars_figure
from tracer.errors import ConfigError
from tracer.scenario.step import mesh_line, pass_words, real_tokens_per_replica, with_tokens
from tracer.traffic.contracts import compare_contracts
from tracer.traffic.orders import Orders, rank_orders
from tracer.traffic.traffic import HEADINGS, CommVolume, comm_volume, traffic_footer, traffic_rows

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


def traffic_report(query: dict[str, str]) -> dict[str, Any]:
    """The page's controls and blocks.

    Raises:
        ConfigError: for what is wrong with the scenario, or an order that the mesh refuses.
    """
    scenario = scenario_of(query)
    tokens = whole_of(query, "tokens", None)
    if tokens is not None:
        scenario = with_tokens(scenario, tokens)
    traffic, orders, why = comm_volume(scenario), *_ranked(scenario)
    against = query.get("against", "")
    return {
        "title": mesh_line(scenario),
        "controls": _controls(scenario, orders, tokens, against),
        "blocks": [
            *_axes(traffic),
            *swaps_to_try(scenario),
            *(swapped_blocks(traffic, against) if against else []),
            *(orders_blocks(orders) if orders else [note(f"Orders are not ranked: {why}.")]),
            *_contracts(scenario),
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
        number_control("tokens", words, tokens or real_tokens_per_replica(scenario), least=1),
        choice_control("mesh.order", "Order of the axes, fastest first", own, mine),
        choice_control(
            "against",
            "Beside another order",
            against,
            [("", "none"), *others, *([] if known else [(against, against)])],
        ),
    ]


def _ranked(scenario: Scenario) -> tuple[Orders | None, str]:
    """Every order, or None and the reason: too many ranks to lay out in each order."""
    try:
        return rank_orders(scenario), ""
    except ConfigError as error:
        return None, str(error)


def _swaps(own: str, other: str) -> str:
    moved = [a for a, b in zip(own.split("-"), other.split("-"), strict=True) if a != b]
    return f" (swaps {moved[0]} and {moved[1]})" if len(moved) == 2 else " (the same)" if not moved else ""


def _axes(traffic: CommVolume) -> list[Block]:
    lines = traffic.lines
    names = [f"{line_name(line.axis, line.part)}, a {line.per}" for line in lines]
    series = [
        Series("NVLink", [line.nvlink_bytes for line in lines], "var(--nvlink)"),
        Series("InfiniBand", [line.ib_bytes for line in lines], "var(--ib)", pattern="/"),
    ]
    rows = [[line_name(row[0], row[1]), *row[2:]] for row in traffic_rows(traffic)]
    figure = bars_figure(names, series, "bytes a GPU sends")
    return [
        counts(
            f"One {pass_words(traffic.scenario)}, averaged over all GPUs",
            [(s, f(v)) for s, v, f in sums_of(traffic)],
        ),
        heading(f"Axis by axis, in {traffic.scenario.phase}"),
        chart("Bytes a GPU sends, axis by axis, NVLink and InfiniBand", figure, height=120 + 40 * len(lines)),
        table("What each axis sends", ["axis", *HEADINGS[2:]], rows),
        *(note(line) for line in traffic_footer(traffic)[:2]),
    ]


def _contracts(scenario: Scenario) -> list[Block]:
    """The contracts of a MoE block side by side, with and without de-duplication."""
    if not scenario.model.moe_layers:
        return []
    title = heading("TP, EP, all rows or weights: what a MoE layer moves")
    try:
        compared = compare_contracts(scenario)
    except ConfigError as error:
        return [title, alert(error)]
    # Pulled weights do not depend on the tokens: beside them nothing else would be seen.
    entries = [entry for entry in compared.entries if entry.name != "dwdp"]
    series = [
        Series("NVLink", [entry.nvlink_bytes for entry in entries], "var(--nvlink)"),
        Series("InfiniBand", [entry.ib_bytes for entry in entries], "var(--ib)", pattern="/"),
    ]
    figure = bars_figure([entry.name for entry in entries], series, "bytes per GPU and MoE layer")
    return [
        title,
        chart(
            "Bytes a GPU moves in a MoE layer when tokens or sums move",
            figure,
            height=120 + 40 * len(entries),
        ),
        table("The MoE contracts", compared.headings(), compared.rows()),
        note(compared.note),
    ]

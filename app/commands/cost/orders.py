"""``tokentrip orders``: every axis order, ranked by what crosses nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json, print_table

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


@click.command("orders")
@scenario_argument
@click.option("--top", type=click.IntRange(min=1), help="Only the first orders.")
@json_option()
def orders_command(scenario: Scenario, top: int | None, as_json: bool) -> None:
    """Rank every order of the dense axes by bytes across islands, and by time.

    Figures are bytes one GPU sends in a forward pass (in decode: a step of one new token a request), and
    its time when hops follow one another.

    \b
    Example:
      tokentrip orders six-cuts
      tokentrip orders six-cuts --phase decode
    """
    from tracer.display import format_bytes, format_seconds
    from tracer.scenario.step import pass_words
    from tracer.timing.pass_verdict import not_told_apart
    from tracer.traffic.orders import rank_orders

    orders = rank_orders(scenario)
    if as_json:
        print_json(orders.to_dict())
        return
    rows = [
        [
            f"{place}{' *' if entry.is_given else ''}",
            entry.order,
            format_bytes(entry.ib_bytes),
            format_seconds(entry.seconds),
            str(entry.rank_by_time),
            entry.why,
        ]
        for place, entry in enumerate(orders.ranked[:top], 1)
    ]
    print_table(("#", "order", "over IB", "time", "by time", "why"), rows)
    click.echo(f"* the order of the scenario. Per GPU and {pass_words(scenario)}, uniform picks.")
    click.echo(not_told_apart({entry.order: entry.seconds for entry in orders.ranked}))
    for order, why in orders.refused:
        click.echo(f"refused: {order}: {why}")

"""``tokentrip traffic``: bytes and time per axis, with the formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json, print_table

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


@click.command("traffic")
@scenario_argument
@click.option(
    "--tokens",
    type=int,
    help="Tokens of each replica: the scenario's prompt, in decode the requests of its step, when left out.",
)
@click.option("--contracts", is_flag=True, help="The MoE contracts side by side instead.")
@json_option()
def traffic_command(scenario: Scenario, tokens: int | None, contracts: bool, as_json: bool) -> None:
    """Print what each axis sends per GPU and layer, by closed forms of the scenario's phase.

    \b
    Example:
      tokentrip traffic six-cuts
      tokentrip traffic six-cuts-decode --tokens 128
      tokentrip traffic deepseek-v3-prefill-ep32 --contracts
    """
    from tracer.scenario.step import with_tokens
    from tracer.traffic.traffic import comm_volume

    if tokens is not None:
        scenario = with_tokens(scenario, tokens)
    if contracts:
        _contracts(scenario, as_json)
        return
    traffic = comm_volume(scenario)
    if as_json:
        print_json(traffic.to_dict())
        return
    from tracer.scenario.step import mesh_line
    from tracer.traffic.traffic import HEADINGS, traffic_footer, traffic_rows

    click.echo(mesh_line(scenario))
    print_table(HEADINGS[:-1], [row[:-1] for row in traffic_rows(traffic)])
    for row in traffic_rows(traffic):
        click.echo(f"{row[0]} {row[1]}: {row[-1]}")
    for line in traffic_footer(traffic):
        click.echo(line)


def _contracts(scenario: Scenario, as_json: bool) -> None:
    from tracer.timing.pass_verdict import not_told_apart
    from tracer.traffic.contracts import compare_contracts

    compared = compare_contracts(scenario)
    if as_json:
        print_json(compared.to_dict())
        return
    print_table(compared.headings(), compared.rows())
    click.echo(compared.note)
    click.echo(not_told_apart({entry.name: entry.seconds for entry in compared.entries}))

"""``tokentrip advise``: which parallelism for this cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json, print_table

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario
    from tracer.traffic.advise import AdviceChoice


@click.command("advise")
@scenario_argument
@click.option(
    "--objective", type=click.Choice(["throughput", "ttft"]), default="throughput", show_default=True
)
@json_option()
def advise_command(scenario: Scenario, objective: str, as_json: bool) -> None:
    """Walk the decision chart: one node or many, throughput or first token, with this scenario's numbers.

    \b
    Example:
      tokentrip advise deepseek-v3-prefill-ep32 --objective ttft
    """
    from tracer.traffic.advise import advise

    advice = advise(scenario, objective)
    if as_json:
        print_json(advice.to_dict())
        return
    for question, answer in advice.steps:
        click.echo(f"{question} {answer}")
    click.echo(f"The chart says: {advice.recommended}\n")
    headings = (
        "choice",
        "NVLink",
        "IB",
        "comm. time",
        "tokens per expert",
        "FLOP a GPU, a prompt",
        "weights a GPU",
    )
    print_table(headings, [_cells(choice) for choice in advice.choices])
    click.echo("\nA forward pass of the scenario's tokens, per GPU, by closed forms at peak link rates.")
    for note in advice.notes:
        click.echo(f"note: {note}")


def _cells(choice: AdviceChoice) -> tuple[str, ...]:
    from tracer.display import format_bytes, format_seconds

    if choice.refused is not None:
        return (choice.name, "-", "-", "-", "-", "-", choice.refused)
    return (
        choice.name,
        format_bytes(choice.nvlink_bytes),
        format_bytes(choice.ib_bytes),
        format_seconds(choice.seconds),
        f"{choice.tokens_per_expert:,.4g}",
        f"{choice.prompt_flops:.3g}",
        format_bytes(choice.weight_bytes),
    )

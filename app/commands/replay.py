"""``tokentrip replay``: run the mesh on small arrays and prove the trip."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.proof.replay import GenerationReport, ReplayReport
    from tracer.scenario.scenario import Scenario

DIFFERS = 1


@click.command("replay")
@scenario_argument
@click.option(
    "--tiny",
    is_flag=True,
    help="Shrink widths, layers and prompts, not mesh and placement; large models shrink anyway.",
)
@click.option("--fault", metavar="NAME", help="Switch a known mistake on; --fault list names them.")
@click.option("--weights-seed", default=0, show_default=True, help="Seed of weights and prompts.")
@click.option("--steps", default=2, show_default=True, help="With --phase decode: steps after prefill.")
@click.option("--decode", metavar="SCENARIO", help="A decode pool that the K/V moves to; not with --tiny.")
@json_option("The report as JSON.")
def replay_command(
    scenario: Scenario,
    tiny: bool,
    fault: str | None,
    weights_seed: int,
    steps: int,
    decode: str | None,
    as_json: bool,
) -> None:
    """Run a prefill on virtual GPUs: equal to one device, and moved as the trips say?

    In decode, prefill and decode steps: the same, and K/V kept where it is claimed to be?

    SCENARIO is a preset, a .toml or .json scenario, or a Hugging Face config.json with mesh flags.
    Ends with exit code 1 when anything differs.

    \b
    Example:
      tokentrip replay six-cuts --tiny
      tokentrip replay six-cuts --tiny --fault rope_local
      tokentrip replay six-cuts --tiny --phase decode --steps 3
    """
    from tracer.display import left, text_table
    from tracer.proof.replay import replay, replay_generation
    from tracer.proof.replay.faults import MEANING
    from tracer.proof.replay.prove import MAX_WEIGHTS, count_weights
    from tracer.scenario.files import load_scenario

    if fault == "list":
        for line in text_table((left(width=18, gap=0), left(gap=0)), MEANING.items(), headings=False):
            click.echo(line)
        return
    if not tiny and count_weights(scenario) > MAX_WEIGHTS:
        click.echo("note: the whole model is too large to run here; replaying it tiny", err=True)
        tiny = True
    report: GenerationReport | ReplayReport
    if scenario.decodes or decode is not None:
        pool = load_scenario(decode) if decode is not None else None
        report = replay_generation(scenario, steps, pool, tiny=tiny, fault=fault, seed=weights_seed)
    else:
        report = replay(scenario, tiny=tiny, fault=fault, seed=weights_seed)
    if as_json:
        print_json({"schema": 1, **report.to_dict()}, 2)
    else:
        click.echo(str(report))
    if not report.ok:
        sys.exit(DIFFERS)

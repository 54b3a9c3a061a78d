"""``tokentrip fits``: do the weights fit, and how much K/V beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.commands.common.scenario_source import scenario_argument
from app.commands.common.tables import json_option, print_json

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario


@click.command("fits")
@scenario_argument
@click.option(
    "--usable", type=float, default=1.0, show_default=True, help="Part of the memory that may be used."
)
@json_option()
@click.pass_context
def fits_command(context: click.Context, scenario: Scenario, usable: float, as_json: bool) -> None:
    """Say what fits in the GPUs' memory, and which GPU is the fullest.

    Exit code 1 when the weights do not fit.

    \b
    Example:
      tokentrip fits deepseek-v3-prefill-ep32 --usable 0.9
    """
    from tracer.memory.fits import check_fits

    fits = check_fits(scenario, usable)
    if as_json:
        print_json(fits.to_dict(), 1)
    else:
        click.echo(str(fits))
    context.exit(0 if fits.ok else 1)

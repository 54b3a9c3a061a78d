"""``tokentrip presets``: what ships, each with its source."""

from __future__ import annotations

import click

from app.commands.common.tables import json_option, print_json


@click.command("presets")
@json_option()
def presets_command(as_json: bool) -> None:
    """List the scenarios that ship, with their meshes and sources.

    \b
    Example:
      tokentrip presets
    """
    from tracer.scenario.files import load_scenario, preset_names
    from tracer.scenario.step import mesh_line

    scenarios = [load_scenario(name) for name in preset_names()]
    if as_json:
        rows = [{"name": s.name, "mesh": mesh_line(s), "source": s.source} for s in scenarios]
        print_json({"schema": 1, "presets": rows}, 1)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("preset", "mesh", "source", show_lines=False, box=None, pad_edge=False)
    for scenario in scenarios:
        table.add_row(scenario.name, mesh_line(scenario), scenario.source)
    Console().print(table)

"""``tokentrip presets``: what ships, each with its source."""

from __future__ import annotations

import click

from app.commands.common.tables import json_option, print_json, print_table


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
    print_table(
        ("preset", "mesh", "source"), [(s.name or "", mesh_line(s), s.source or "") for s in scenarios]
    )

"""``tokentrip presets``: what ships, each with its source."""

from __future__ import annotations

import click

from app.commands.common.tables import print_table


@click.command("presets")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
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
        import json

        rows = [{"name": s.name, "mesh": mesh_line(s), "source": s.source} for s in scenarios]
        click.echo(json.dumps({"schema": 1, "presets": rows}, indent=1, ensure_ascii=False))
        return
    print_table(
        ("preset", "mesh", "source"), [(s.name or "", mesh_line(s), s.source or "") for s in scenarios]
    )

"""``tokentrip diff``: two launch lines compared, group by group."""

from __future__ import annotations

import click

from app.commands.common.tables import json_option, print_json


@click.command("diff")
@click.argument("first")
@click.argument("second")
@click.option("--gpus", type=int, help="GPUs in all, for both; left out, each line says it.")
@click.option("--gpus-per-node", type=int, help="GPUs of a node [the launcher's count, else 8].")
@click.option("--model", help="config.json, or the name of a model that ships: compares experts too.")
@json_option()
def diff_command(
    first: str, second: str, gpus: int | None, gpus_per_node: int | None, model: str | None, as_json: bool
) -> None:
    """Say whether two launch lines make the same groups, or where they part.

    Each line begins with its framework or is a whole shell line; groups are compared as sets, along tp, cp,
    dp, pp, etp, ep and edp.

    \b
    Example:
      tokentrip diff "vllm -tp 4 -dp 2 --enable-expert-parallel" "sglang --tp 8 --attn-dp-size 2 --ep 8"
    """
    from app.commands.common.model_source import read_model
    from tracer.frameworks import diff, from_line

    spec = read_model(model)
    one, two = (
        from_line(line, gpus=gpus, gpus_per_node=gpus_per_node, model=spec) for line in (first, second)
    )
    comparison = diff(one, two)
    if as_json:
        print_json(comparison.to_dict())
    else:
        click.echo(str(comparison))

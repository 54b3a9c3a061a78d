"""``tokentrip model``: what a model is, from its config.json or by the name of one that ships."""

from __future__ import annotations

import click

from app.commands.common.model_source import read_model_with_notes


@click.command("model")
@click.argument("source", metavar="CONFIG|NAME")
@click.option(
    "--kv",
    type=click.Choice(["bf16", "fp16", "fp32", "fp8"]),
    default="bf16",
    show_default=True,
    help="Dtype of the K/V cache.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def model_command(source: str, kv: str, as_json: bool) -> None:
    """Say what a model is made of: layers by kind, parameters, bytes, K/V and states, FLOPs.

    A hf_quant_config.json beside the config is read with it.

    \b
    Examples:
      tokentrip model deepseek-v3.2 --kv fp8
      tokentrip model path/to/config.json --json
    """
    from tracer.memory.anatomy import anatomy
    from tracer.model.dtype import Dtype

    read = read_model_with_notes(source)
    found = anatomy(read.spec, read.warnings, Dtype(kv))
    if as_json:
        import json

        click.echo(json.dumps(found.to_dict(), indent=1))
    else:
        click.echo(str(found))

"""``tokentrip completion``: the shell script that completes commands, flags and presets."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      eval "$(tokentrip completion bash)"
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        raise click.BadParameter(f"no completion for {shell}")
    click.echo(found(context.find_root().command, {}, "tokentrip", "_TOKENTRIP_COMPLETE").source())

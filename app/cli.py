"""The command line, ``tokentrip``: each command lives in its own file and loads when it is called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from tracer.errors import ConfigError

COMMANDS = {
    "advise": "app.commands.cost.advise:advise_command",
    "app": "app.commands.serve:serve_command",
    "causal": "app.commands.cost.causal:causal_command",
    "census": "app.commands.batch.census:census_command",
    "compare": "app.commands.compare:compare_command",
    "completion": "app.commands.completion:completion_command",
    "diff": "app.commands.diff:diff_command",
    "eplb": "app.commands.batch.eplb:eplb_command",
    "export": "app.commands.export:export_command",
    "fits": "app.commands.fits:fits_command",
    "flags": "app.commands.flags:flags_command",
    "from": "app.commands.from_:from_command",
    "generate": "app.commands.decode.generate:generate_command",
    "groups": "app.commands.groups:groups_command",
    "kv": "app.commands.decode.kv:kv_command",
    "ledger": "app.commands.ledger:ledger_command",
    "lockstep": "app.commands.decode.lockstep:lockstep_command",
    "model": "app.commands.model:model_command",
    "orders": "app.commands.cost.orders:orders_command",
    "phases": "app.commands.decode.phases:phases_command",
    "presets": "app.commands.presets:presets_command",
    "rank": "app.commands.rank:rank_command",
    "replay": "app.commands.replay:replay_command",
    "run": "app.commands.run:run_command",
    "time": "app.commands.cost.time_:time_command",
    "traffic": "app.commands.cost.traffic:traffic_command",
    "trip": "app.commands.trip:trip_command",
}
WRONG_INPUT = 2


class LazyGroup(click.Group):
    """A group that imports a command's file when the command is named, and not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now."""
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, attribute = target.split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but an unknown command names the nearest known one."""
        if args and args[0] not in COMMANDS:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tokentrip", message="%(prog)s %(version)s", prog_name="tokentrip")
def tokentrip() -> None:
    """Follow one token through a GPU mesh.

    \b
    Example:
      tokentrip trip six-cuts
    """


def main(arguments: list[str] | None = None, **extra: Any) -> None:
    """Run the command line; wrong input ends in one line on stderr and exit code 2."""
    try:
        for word in arguments or ():
            if "\0" in word:
                raise ConfigError(
                    "arguments", word, "holds a NUL character, which no path can", "leave it out"
                )
        tokentrip.main(args=arguments, prog_name="tokentrip", **extra)
    except ConfigError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(WRONG_INPUT)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()

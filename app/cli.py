"""The command line, ``tokentrip``: each command lives in its own file and loads when it is called."""

from __future__ import annotations

import gc
import os
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
    "keys": "app.commands.keys:keys_command",
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
    "site": "app.commands.site:site_command",
    "time": "app.commands.cost.time_:time_command",
    "traffic": "app.commands.cost.traffic:traffic_command",
    "trip": "app.commands.trip:trip_command",
}
WRONG_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141


class PipeClosedError(Exception):
    """What reads our standard output has gone."""


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
        # Importing makes no garbage; looking for it is a twentieth of a short command's time.
        gc.disable()
        try:
            command: click.Command = getattr(import_module(module), attribute)
        finally:
            gc.enable()
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """As click does, but a pipe without a reader ends the program, not click with exit code 0."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise PipeClosedError from error
        return found

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
    """Run the command line.

    Exit codes: 0 and 1 by the command, 2 for wrong input (one line on stderr), and as shells count them 130
    for Ctrl-C and 141 where the reader of a pipe has gone, both without a word.
    """
    try:
        code = _run(arguments, extra)
    except ConfigError as error:
        where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        click.echo(f"error: {error}{where}", err=True)
        code = WRONG_INPUT
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except PipeClosedError:
        # What is left in the buffer would be written at exit, and fail again.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        code = BROKEN_PIPE
    sys.exit(code)


def _run(arguments: list[str] | None, extra: dict[str, Any]) -> int:
    for word in arguments or ():
        if "\0" in word:
            rule = "holds a NUL character, which no path can"
            raise ConfigError("arguments", word, rule, "leave it out")
    code = tokentrip.main(args=arguments, prog_name="tokentrip", standalone_mode=False, **extra)
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()

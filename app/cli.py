"""The command line, `tokentrip`."""

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tokentrip", message="%(prog)s %(version)s", prog_name="tokentrip")
def main() -> None:
    """Follow one token through a GPU mesh."""

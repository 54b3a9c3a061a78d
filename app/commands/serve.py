"""``tokentrip app``: serve the explorer."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tracer.errors import ConfigError


@click.command("app")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8050, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on."
)
@click.option(
    "--jobs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of background jobs; without it a temporary one, removed at the end.",
)
@click.option("--open/--no-open", "open_browser", default=True, help="Open a browser window.")
def serve_command(host: str, port: int, jobs: Path | None, open_browser: bool) -> None:
    """Serve the explorer on this machine and open it.

    \b
    Example:
      tokentrip app --port 8051
    """
    try:
        from app.server import create_app
    except ModuleNotFoundError as error:
        raise ConfigError(
            "app", error.name, "is not installed", "install it: pip install 'tokentrip[app]'"
        ) from error
    _check_free(host, port)
    url = f"http://{host}:{port}/"
    click.echo(f"tokentrip explorer on {url} (Ctrl+C stops it)")
    if open_browser:
        _open_soon(url)
    # Ended by a signal, Python would leave the temporary folder behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with TemporaryDirectory(prefix="tokentrip-", ignore_cleanup_errors=True) as temporary:
        create_app(jobs or Path(temporary)).run(host=host, port=port, debug=False)


def _check_free(host: str, port: int) -> None:
    """Refuse a port that something else holds, before anything starts."""
    import socket

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                "--port", port, f"cannot be used on {host}: {error.strerror}", f"try --port {port + 1}"
            ) from error


def _open_soon(url: str) -> None:
    import threading
    import webbrowser

    timer = threading.Timer(1.0, webbrowser.open, [url])
    timer.daemon = True
    timer.start()

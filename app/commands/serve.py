"""``tokentrip app``: serve the explorer."""

from __future__ import annotations

import errno
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from app.web.base_path import checked_base_path
from tracer.errors import ConfigError

THREADS, SECONDS_PER_REQUEST = 8, 60
"""Threads per worker, and how long a worker may be silent before it is replaced."""


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
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    help="Serve several people with so many worker processes (gunicorn); two fit two cores.",
)
@click.option(
    "--embed", is_flag=True, help="Let other sites show a trip in an iframe, by its address /embed."
)
@click.option(
    "--base-path", metavar="PREFIX", help="Serve below a prefix such as /tokentrip, behind a proxy or not."
)
@click.option("--open/--no-open", "open_browser", default=True, help="Open a browser window.")
def serve_command(
    host: str,
    port: int,
    jobs: Path | None,
    workers: int | None,
    embed: bool,
    base_path: str | None,
    open_browser: bool,
) -> None:
    """Serve the explorer on this machine and open it; with --workers, to others too.

    \b
    Example:
      tokentrip app --port 8051
      tokentrip app --workers 2 --host 0.0.0.0 --jobs /var/tmp/tokentrip
    """
    try:
        from app.server import create_app
    except ModuleNotFoundError as error:
        raise ConfigError(
            "app", error.name, "is not installed", "install it: pip install 'tokentrip[app]'"
        ) from error
    _check_free(host, port)
    base = checked_base_path(base_path or "")
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}{base}/"
    click.echo(f"tokentrip explorer on {url} (Ctrl+C stops it)")
    if open_browser and workers is None:
        _open_soon(url)
    # Ended by a signal, Python would leave the temporary folder behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with TemporaryDirectory(prefix="tokentrip-", ignore_cleanup_errors=True) as temporary:
        folder = jobs or Path(temporary)
        if workers is None:
            create_app(folder, embed, base_path).run(host=host, port=port, debug=False)
        else:
            _serve_many(host, port, folder, workers, embed, base_path)


def _serve_many(host: str, port: int, jobs: Path, workers: int, embed: bool, base_path: str | None) -> None:
    """Worker processes under gunicorn, which replaces one that dies or hangs.

    Started from here and not by ``gunicorn app.server:...``: that looks for ``app`` in the current folder
    first, and would run whatever lies there.
    """
    from gunicorn.app.base import BaseApplication

    from app.server import create_app

    class Workers(BaseApplication):  # type: ignore[misc]
        """gunicorn with our settings in place of a command line's."""

        def load_config(self) -> None:
            address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            settings = {
                "bind": address,
                "workers": workers,
                "threads": THREADS,
                "limit_request_line": 0,
                "timeout": SECONDS_PER_REQUEST,
                "proc_name": "tokentrip",
                "control_socket_disable": True,  # it would write below HOME
            }
            for key, value in settings.items():
                if key in self.cfg.settings:  # older releases have fewer
                    self.cfg.set(key, value)

        def load(self) -> object:
            """The WSGI application; called once per worker."""
            return create_app(jobs, embed, base_path).server

    Workers().run()


_HOSTS = "try 127.0.0.1, or 0.0.0.0 for all networks"


def _check_free(host: str, port: int) -> None:
    """Refuse a port that something else holds, before anything starts."""
    import socket

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except socket.gaierror as error:
            raise ConfigError("--host", host, "does not resolve to an address", _HOSTS) from error
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise ConfigError("--host", host, "is no address of this machine", _HOSTS) from error
            fix = f"try --port {port + 1 if port < 65535 else port - 1}"
            raise ConfigError("--port", port, f"cannot be used on {host}: {error.strerror}", fix) from error


def _open_soon(url: str) -> None:
    import threading
    import webbrowser

    timer = threading.Timer(1.0, webbrowser.open, [url])
    timer.daemon = True
    timer.start()

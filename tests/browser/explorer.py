"""Chromium, and the explorer served to it: for the browser tests and the page benchmark."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Playwright

NO_CHROMIUM = "no Chromium: install it (Debian: apt-get install chromium) or set CHROMIUM to the path of one"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
CHROMIUM_FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path() -> str | None:
    """The Chromium that is installed here, if any: Playwright's own download is not needed."""
    names = (os.environ.get("CHROMIUM", ""), *CHROMIUM_NAMES)
    return next((path for name in names if name and (path := shutil.which(name))), None)


def launch_chromium(playwright: Playwright, path: str) -> Browser:
    """Start a headless Chromium with a fresh, temporary profile."""
    return playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)


@contextmanager
def serve(factory: str, log_path: Path) -> Iterator[str]:
    """Serve the Dash app that `factory` ("module:function") makes; give its address.

    In a process of its own: the explorer's background jobs fork, which is unsafe beside a browser's threads.
    The address is on loopback, at a port that is free. Errors go to `log_path`.
    """
    command = [sys.executable, "-m", "tests.browser.serve", factory]
    root = Path(__file__).parents[2]
    with (
        log_path.open("w") as log,
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the explorer did not start:\n{log_path.read_text()}")
            yield url
        finally:
            server.terminate()

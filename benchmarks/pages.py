"""How long each of the explorer's pages takes until it is drawn and quiet, in milliseconds."""

import tempfile
import time
from pathlib import Path

import dash
from playwright.sync_api import Browser, sync_playwright

from app.server import create_app
from tests.browser.explorer import NO_CHROMIUM, chromium_path, launch_chromium, serve

RUNS = 3


def ready_ms(browser: Browser, url: str) -> float:
    """From the first request, with an empty cache, until nothing more is loading."""
    with browser.new_context() as context:
        page = context.new_page()
        start = time.perf_counter()
        page.goto(url, wait_until="networkidle")
        # Chromium calls a page idle after half a second without a request.
        return 1e3 * (time.perf_counter() - start - 0.5)


def main() -> None:
    path = chromium_path()
    if path is None:
        raise SystemExit(NO_CHROMIUM)
    create_app()
    paths = [str(page["path"]) for page in dash.page_registry.values()]
    with (
        tempfile.TemporaryDirectory() as folder,
        serve("app.server:create_app", Path(folder) / "server.log") as url,
        sync_playwright() as playwright,
    ):
        browser = launch_chromium(playwright, path)
        for page_path in paths:
            best = min(ready_ms(browser, url + page_path.lstrip("/")) for _ in range(RUNS))
            print(f"{page_path:24}{best:8.0f} ms")


if __name__ == "__main__":
    main()

"""What a change costs where Python runs in the tab: ``make bench-ui`` prints it."""

from __future__ import annotations

import functools
import http.server
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser

from app.site.build import build_site

BOUNDS_MS = {"six-cuts": 100, "deepseek-v3-decode-ep144": 400}
CHANGES = 9
LIVE_MS, START_BOUND_MS = 60_000, 3_000
ASK = """async ([scenario, changes]) => {
  let best = Infinity;
  for (let seed = 1; seed <= changes; seed += 1) {
    const began = performance.now();
    const answer = await fetch(`api/trip?scenario=${scenario}&picks=&seed=${seed}`);
    const trip = await answer.json();
    if (trip.error) throw new Error(trip.error.text);
    best = Math.min(best, performance.now() - began);
  }
  return best;
}"""
STARTED = "performance.now()"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Wait:
    """Milliseconds that a reader waits, and the bound."""

    name: str
    milliseconds: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        return self.milliseconds <= self.bound

    def __str__(self) -> str:
        verdict = "ok" if self.holds else "MISSED"
        return f"{self.name:<58} {self.milliseconds:>6.0f} ms   (≤ {self.bound:g} {verdict})"


@contextmanager
def served_site() -> Iterator[str]:
    """A site that is built now, behind Python's own file server."""
    with tempfile.TemporaryDirectory() as name:
        build_site(Path(name) / "site")
        handler = functools.partial(_Quiet, directory=name)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}/site/"
            server.shutdown()


def waits(browser: Browser) -> list[Wait]:
    """From opening the page to a live one, and the best of some changes of each scenario."""
    with served_site() as url, browser.new_context(bypass_csp=True) as context:
        page = context.new_page()
        page.goto(url)
        page.locator("html[data-live=yes]").wait_for(state="attached", timeout=LIVE_MS)
        found = [Wait("first visit to a live page, in the tab", page.evaluate(STARTED), START_BOUND_MS)]
        for name, bound in BOUNDS_MS.items():
            found.append(Wait(f"a change of {name}, in the tab", page.evaluate(ASK, [name, CHANGES]), bound))
        return found

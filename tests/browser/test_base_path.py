"""Below a prefix, behind a proxy that holds each answer back until it is whole: pages, files, jobs."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from tests.browser.downloads import saved_file
from tests.browser.explorer import serve
from tests.browser.test_batch_jobs import PATIENCE_MS
from tests.browser.test_report_pages import expect_drawn, figure

BASE = "/tokentrip"
HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "server", "date", "content-length"}


def proxy_to(target: str) -> type[BaseHTTPRequestHandler]:
    class Proxy(BaseHTTPRequestHandler):
        """Takes the prefix off, reads the whole answer, passes it on."""

        def forward(self) -> None:
            if not self.path.startswith(BASE + "/"):
                self.send_error(404)
                return
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            address = target + self.path.removeprefix(BASE + "/")
            request = urllib.request.Request(address, body, dict(self.headers), method=self.command)
            try:
                answer = urllib.request.urlopen(request)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(BrokenPipeError, ConnectionResetError):  # a page that is left
                self.wfile.write(content)

        do_GET = do_POST = forward

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    return Proxy


@pytest.fixture(scope="module")
def proxied_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("proxied")
    with ExitStack() as served:
        with pytest.MonkeyPatch.context() as own:
            own.setenv("TOKENTRIP_BASE_PATH", BASE)
            own.setenv("TOKENTRIP_JOBS", str(folder / "jobs"))
            target = served.enter_context(serve("app.server:create_app", folder / "server.log"))
        server = ThreadingHTTPServer(("127.0.0.1", 0), proxy_to(target))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        served.callback(server.server_close)
        served.callback(server.shutdown)
        yield f"http://127.0.0.1:{server.server_port}{BASE}/"


def test_pages_link_to_each_other_and_save_files(page: Page, proxied_url: str) -> None:
    page.goto(proxied_url + "?hop=4")
    expect(page.locator(".hop-panel h2")).to_contain_text("Dispatch")
    page.locator(".menu summary").click()
    saved_file(page, page.get_by_role("link", name="svg", exact=True), "six-cuts-trip.svg")
    page.locator("#nav-traffic").click()
    expect_drawn(page)
    assert page.url.startswith(proxied_url + "traffic")
    expect(page.locator("#nav-traffic")).to_have_attribute("aria-current", "page")
    page.goto(proxied_url + "learn?chapter=2")
    expect(page.locator("h1, h2").first).to_be_visible()


def test_a_job_runs_behind_the_proxy(page: Page, proxied_url: str) -> None:
    page.goto(proxied_url + "batch?tokens=2097152")
    page.get_by_role("button", name="Count 2,097,152 tokens").click()
    expect(figure(page, "node crossings a token")).to_be_visible(timeout=PATIENCE_MS)

"""The static site in Chromium: opened from a plain file server below a path, with and without a network."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from tests.site.building import built_site

SLOW_MS = 60_000
MOST_BYTES = 7_500_000
LIVE = "html[data-live=yes]"
SCRIPT = "<script>alert(1)</script>"
CONTROLLED = """new Promise((done) => {
  if (navigator.serviceWorker.controller) done(1);
  else navigator.serviceWorker.addEventListener("controllerchange", () => done(1));
})"""
"""Until the service worker has the page."""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Python's own file server, which compresses nothing; ``sent`` are the bytes it answered with."""

    sent = 0

    def log_message(self, format: str, *args: object) -> None: ...

    def copyfile(self, source: object, outputfile: object) -> None:
        content = source.read()  # type: ignore[attr-defined]
        type(self).sent += len(content)
        outputfile.write(content)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[http.server.ThreadingHTTPServer]:
    root = tmp_path_factory.mktemp("static")
    built_site(root / "some" / "path")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def url(served: http.server.ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{served.server_port}/some/path/"


@pytest.fixture
def hosts(guarded: Page) -> set[str]:
    """Every host that the page, its frames and workers ask."""
    asked: set[str] = set()

    def note(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss"):
            asked.add(parts.netloc)

    guarded.context.on("request", note)
    return asked


def wait_until_live(page: Page) -> None:
    page.locator(LIVE).wait_for(state="attached", timeout=SLOW_MS)


def test_a_trip_is_drawn_at_once_then_live_then_kept_without_a_network(
    guarded: Page, url: str, hosts: set[str], served: http.server.ThreadingHTTPServer
) -> None:
    Quiet.sent = 0
    guarded.goto(url)
    expect(guarded.locator(".hop-panel h2")).to_be_visible()
    wait_until_live(guarded)
    guarded.locator(".picker select").select_option("mixtral-8x7b-ep8")
    expect(guarded.locator(".question .subtitle")).to_contain_text("mixtral-8x7b-ep8")
    expect(guarded.locator(".trip.stale")).to_have_count(0)
    guarded.evaluate(CONTROLLED)
    assert Quiet.sent <= MOST_BYTES
    before = Quiet.sent
    guarded.reload()
    wait_until_live(guarded)
    guarded.context.set_offline(True)
    assert Quiet.sent - before < 20_000, "a second view loads no more than the service worker's own script"
    guarded.goto(url + "mesh/?scenario=kimi-k2")
    wait_until_live(guarded)
    expect(guarded.locator(".mesh-verdict")).to_contain_text("GPU")
    guarded.context.set_offline(False)
    assert hosts == {f"127.0.0.1:{served.server_port}"}


@pytest.mark.parametrize(
    ("path", "selector"),
    [
        ("mesh/?scenario=qwen3-235b", ".mesh-verdict .links"),
        ("compare/", ".compare.ready table"),
        ("learn/", ".lesson .predict"),
        ("traffic/?scenario=kimi-k2", ".report.ready table, .report table"),
    ],
)
def test_pages_work_in_the_tab(guarded: Page, url: str, path: str, selector: str) -> None:
    guarded.goto(url + path)
    expect(guarded.locator(selector).first).to_be_visible(timeout=SLOW_MS)
    expect(guarded.get_by_role("alert").filter(has_text="not")).to_have_count(0)


def test_pages_of_figures_one_after_the_other(guarded: Page, url: str) -> None:
    guarded.goto(url + "decode/?scenario=six-cuts-decode")
    for name in ("Model", "Roofline", "Time"):
        expect(guarded.locator(".report.ready")).to_be_visible(timeout=SLOW_MS)
        guarded.get_by_role("link", name=name, exact=True).first.click()
        guarded.wait_for_url(f"**/{name.lower()}/*")
    expect(guarded.locator(".report.ready")).to_be_visible(timeout=SLOW_MS)
    expect(guarded.locator(".chart.drawn").first).to_be_visible(timeout=SLOW_MS)


def test_a_launch_is_read_and_text_stays_text(guarded: Page, url: str) -> None:
    alerts: list[str] = []
    guarded.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    guarded.goto(url + f"?name={SCRIPT}&mesh.tp={SCRIPT}")
    expect(guarded.locator(".alert")).to_contain_text(SCRIPT, timeout=SLOW_MS)
    guarded.locator("textarea.line").fill(f"vllm serve {SCRIPT} -tp 2")
    guarded.get_by_role("button", name="Read", exact=True).click()
    expect(guarded.locator(".launch-read")).to_contain_text("<script>", timeout=SLOW_MS)
    guarded.locator("textarea.line").fill("vllm serve mistralai/Mixtral-8x7B-v0.1 -tp 8")
    guarded.get_by_role("button", name="Read", exact=True).click()
    expect(guarded.locator(".launch-read")).to_contain_text("Read as", timeout=SLOW_MS)
    assert not alerts
    assert guarded.locator("main script").count() == 0


def test_files_are_made_in_the_tab(guarded: Page, url: str, tmp_path: Path) -> None:
    guarded.goto(url + "?hop=4")
    wait_until_live(guarded)
    guarded.locator(".menu summary").first.click()
    heads = {"svg": b"<svg", "anim.svg": b"<svg", "html": b"<!DOCTYPE", "csv": b"", "json": b"{"}
    heads["png"] = b"\x89PNG"
    for ending, head in heads.items():
        with guarded.expect_download(timeout=SLOW_MS) as download:
            guarded.locator(".menu-list a", has_text=ending).get_by_text(ending, exact=True).click()
        path = tmp_path / f"trip.{ending}"
        download.value.save_as(path)
        content = path.read_bytes()
        assert content.startswith(head)
        assert len(content) > 500


def test_an_element_on_another_page_plays_on_click(
    guarded: Page, url: str, served: object, tmp_path: Path
) -> None:
    root = Path(str(served.RequestHandlerClass.keywords["directory"]))  # type: ignore[attr-defined]
    (root / "blog.html").write_text(
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>a blog</title>'
        '<link rel="icon" href="data:,"><script src="some/path/token-trip.js"></script>'
        '<token-trip scenario="six-cuts" hop="4" live></token-trip>'
        '<token-trip scenario="six-cuts-pp-inside-dp" live></token-trip>'
    )
    Quiet.sent = 0
    guarded.goto(url.replace("some/path/", "blog.html"))
    first, second = guarded.locator("token-trip").all()
    expect(first.locator("img")).to_be_visible()
    guarded.wait_for_load_state("networkidle")
    assert Quiet.sent <= 60_000 + len((root / "blog.html").read_bytes())
    for each in (first, second):
        each.get_by_role("button", name="Make it live").click()
        inside = each.locator("iframe").content_frame
        expect(inside.locator(".hop-panel h2")).to_be_visible(timeout=SLOW_MS)
    inside.locator(LIVE).wait_for(state="attached", timeout=SLOW_MS)

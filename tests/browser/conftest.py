"""Fixtures of the browser tests: `page` is a blank page, `explorer_url` the served explorer.

A test fails if a page wrote an error to the console, threw, or was refused a file. One that
means it to happen takes `console_errors`, looks at what is there, and clears it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, expect, sync_playwright

from tests.browser.explorer import NO_CHROMIUM, chromium_path, launch_chromium, serve

HERE = Path(__file__).parent
PLAYED = "try { localStorage.setItem('tokentrip-played', '1') } catch {}"
"""Readers who have been here: the first layer does not play by itself."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = chromium_path()
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail(NO_CHROMIUM)
        pytest.skip(NO_CHROMIUM)
    expect.set_options(timeout=15_000)
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright, path)
        yield browser
        browser.close()


@pytest.fixture
def console_errors() -> Iterator[list[str]]:
    """What went wrong in the test's page so far; whatever is left at the end fails the test."""
    errors: list[str] = []
    yield errors
    assert not errors, "the page reported errors:\n" + "\n".join(errors)


@pytest.fixture
def page(browser: Browser, console_errors: list[str]) -> Iterator[Page]:
    """A blank page in a context of its own: no cookies, no cache, no storage from another test."""
    # The explorer's content security policy forbids the eval that Playwright's waits rely on.
    with browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True) as context:
        context.add_init_script(PLAYED)
        page = context.new_page()
        _watch(page, console_errors)
        yield page


@pytest.fixture
def guarded(browser: Browser, console_errors: list[str]) -> Iterator[Page]:
    """A page whose content security policy holds, as a reader's browser has it."""
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        context.add_init_script(PLAYED)
        page = context.new_page()
        _watch(page, console_errors)
        yield page


def _watch(page: Page, errors: list[str]) -> None:
    def on_console(message: ConsoleMessage) -> None:
        # Files that did not come are reported with their address below.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            errors.append(message.text)

    def on_response(response: Response) -> None:
        if response.status >= 400 and not response.url.endswith("/favicon.ico"):
            errors.append(f"{response.status} {response.url}")

    def on_request_failed(request: Request) -> None:
        # A page that is left aborts what it was loading.
        if request.failure != "net::ERR_ABORTED":
            errors.append(f"{request.failure} {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("response", on_response)
    page.on("requestfailed", on_request_failed)


@pytest.fixture(scope="package")
def explorer_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The explorer's address. Served once for all tests: it keeps no state."""
    with serve("app.server:create_app", tmp_path_factory.mktemp("explorer") / "server.log") as url:
        yield url

"""Sharing in Chromium: what the clipboard holds, and the screen for a room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.explorer import serve


@pytest.fixture(scope="module")
def embedding_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The explorer as one serves it who lets other sites frame a trip."""
    log = tmp_path_factory.mktemp("embed") / "server.log"
    with ExitStack() as served:
        with pytest.MonkeyPatch.context() as own:
            own.setenv("TOKENTRIP_EMBED", "1")
            url = served.enter_context(serve("app.server:create_app", log))
        yield url


def open_share(page: Page, url: str) -> None:
    page.goto(url + "?hop=4")
    expect(page.locator(".hop-panel h2")).to_be_visible()
    page.locator(".menu summary").click()


def test_a_frame_is_copied_and_shows_the_hop_on_another_page(
    page: Page, embedding_url: str, tmp_path: Path
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_share(page, embedding_url)
    page.get_by_role("button", name="Copy iframe").click()
    expect(page.get_by_role("button", name="Copied", exact=True)).to_be_visible()
    frame = page.evaluate("navigator.clipboard.readText()")
    page.set_content(f"<!DOCTYPE html><title>another page</title>{frame}")
    inside = page.frame_locator("iframe")
    expect(inside.locator(".hop-panel h2")).to_contain_text("Dispatch")


def test_a_picture_is_copied_and_no_frame_is_offered_where_none_is_allowed(
    page: Page, explorer_url: str
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_share(page, explorer_url)
    expect(page.get_by_role("button", name="Copy iframe")).to_have_count(0)
    page.get_by_role("button", name="Copy image").click()
    expect(page.get_by_role("button", name="Copied", exact=True)).to_be_visible()
    kinds = page.evaluate("navigator.clipboard.read().then((items) => items.flatMap((each) => each.types))")
    assert kinds == ["image/png"]


def test_presenting_leaves_the_trip_alone_and_ends_by_escape(page: Page, explorer_url: str) -> None:
    open_share(page, explorer_url)
    page.get_by_role("button", name="Present").click()
    expect(page.locator(".top")).to_be_hidden()
    expect(page.locator(".hop-panel h2")).to_be_in_viewport()
    expect(page.locator(".mesh-svg, .map-place svg").first).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(page.locator(".top")).to_be_visible()

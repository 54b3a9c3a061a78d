"""The fixtures themselves: a page is served, drawn and clicked, and its errors do not go unseen."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dash import Dash, Input, Output, html
from playwright.sync_api import Page, expect

from tests.browser.explorer import serve


def create_counter() -> Dash:
    """A Dash app with one button that counts its clicks, and one that breaks."""
    app = Dash(__name__)
    app.layout = html.Div([html.Button("0", id="count")])

    @app.callback(Output("count", "children"), Input("count", "n_clicks"), prevent_initial_call=True)
    def count(clicks: int) -> str:
        return str(clicks)

    return app


@pytest.fixture
def counter_url(tmp_path: Path) -> Iterator[str]:
    with serve(f"{__name__}:create_counter", tmp_path / "server.log") as url:
        yield url


def test_a_served_page_answers_a_click(page: Page, counter_url: str):
    page.goto(counter_url)
    page.locator("#count").click()
    expect(page.locator("#count")).to_have_text("1")


def test_console_errors_exceptions_and_refused_files_are_seen(
    page: Page, console_errors: list[str], counter_url: str
):
    page.goto(counter_url)
    page.evaluate("console.error('said')")
    page.evaluate("setTimeout(() => { throw new Error('thrown') })")
    page.evaluate("fetch('/assets/none.js')")
    page.evaluate("fetch('http://127.0.0.1:9/').catch(() => {})")
    page.wait_for_timeout(300)
    seen = "\n".join(console_errors)
    console_errors.clear()
    assert "said" in seen
    assert "thrown" in seen
    assert "404" in seen
    assert "127.0.0.1:9" in seen


def test_an_app_that_does_not_start_says_why(tmp_path: Path):
    with (
        pytest.raises(RuntimeError, match="No module named 'no_such_app'"),
        serve("no_such_app:create_app", tmp_path / "server.log"),
    ):
        pass

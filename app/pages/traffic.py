"""Traffic: bytes and time an axis, with the formula; every order of the axes ranked."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Traffic", "/traffic", "Traffic · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``report_page.js`` fills, from the page's address."""
    return frame("traffic")

"""Numbers: a hop on real arrays, rows before and after, and what was computed with them."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Numbers", "/numbers", "Numbers · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``report_page.js`` fills, from the page's address."""
    return frame("numbers")

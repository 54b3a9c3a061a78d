"""Time: pipeline, overlap, tokens against weights, and stragglers."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Time", "/time", "Time · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``report_page.js`` fills, from the page's address."""
    return frame("time")

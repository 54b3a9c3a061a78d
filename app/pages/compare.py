"""Two scenarios: maps, totals, axes and logs side by side."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Compare", "/compare", "Compare · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``compare_page.js`` fills, from the page's address."""
    return frame("compare")

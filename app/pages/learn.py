"""Learn: chapters in the order of the trip, each to be predicted before it is shown, and a quiz."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Learn", "/learn", "Learn · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``learn_page.js`` fills, from the page's address."""
    return frame("learn")

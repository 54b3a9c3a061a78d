"""Traffic: what each axis moves, with its formula, and what another order of the axes would move."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Traffic", "/traffic", "Traffic · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``traffic_page.js`` fills, from the page's address."""
    return frame("traffic")

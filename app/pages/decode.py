"""Decode: what each axis becomes, who keeps the K/V, and its last trip between pools."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Decode", "/decode", "Decode · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``report_page.js`` fills, from the page's address."""
    return frame("decode")

"""Roofline: tokens an expert against batch, and what bounds the expert GEMMs."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Roofline", "/roofline", "Roofline · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``report_page.js`` fills, from the page's address."""
    return frame("roofline")

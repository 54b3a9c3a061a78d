"""The batch: every pick counted, over GPUs and experts, before and after balancing."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Batch", "/batch", "Batch · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``report_page.js`` fills, from the page's address."""
    return frame("batch")

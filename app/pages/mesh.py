"""The mesh: sizes, order, cluster, model and how it is run; what is wrong and what would fix it, at once."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Mesh", "/mesh", "Mesh · tokentrip"


def layout(**_: str) -> html.Div:
    """The frame that ``mesh_page.js`` fills, from the page's address."""
    return frame("mesh")

"""The trip: one token's way over the map, hop by hop. The player in ``assets`` draws it."""

from __future__ import annotations

from dash import html

from app.pages.frame import frame

NAME, PATH, TITLE = "Trip", "/", "tokentrip: follow one token through a GPU mesh"


def layout(**_: str) -> html.Div:
    """The frame that the player fills, from the page's address."""
    return frame("trip")

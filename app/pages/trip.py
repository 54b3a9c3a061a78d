"""The trip: one token's way over the map, hop by hop. The player in ``assets`` draws it."""

from __future__ import annotations

from dash import html

NAME, PATH, TITLE = "Trip", "/", "tokentrip: follow one token through a GPU mesh"


def layout(**_: str) -> html.Div:
    """An empty frame: the player fills it from the page's address."""
    return html.Div(
        html.P("Loading the trip …", className="loading"), className="page", **{"data-page": "trip"}
    )

"""The explorer's pages: thin layouts, registered one by one. What works is in the navigation."""

from __future__ import annotations

import dash

from app.pages import batch, compare, decode, learn, mesh, numbers, roofline, time, traffic, trip

PAGES = (trip, numbers, mesh, traffic, batch, time, roofline, decode, compare, learn)


def register_pages() -> list[tuple[str, str]]:
    """Register every page with Dash; their names and paths, in the order of the navigation."""
    found = []
    for page in PAGES:
        dash.register_page(  # type: ignore[no-untyped-call]
            page.__name__, path=page.PATH, title=page.TITLE, name=page.NAME, layout=page.layout
        )
        found.append((page.NAME, page.PATH))
    return found

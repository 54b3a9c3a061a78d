"""The frame of a page that a script in ``assets`` fills: React leaves its inside alone."""

from __future__ import annotations

from typing import Any

from dash import html


def frame(page: str) -> html.Div:
    """An empty element that names its page."""
    attributes: dict[str, Any] = {"data-page": page}
    return html.Div(className="page", **attributes)

"""What a result shows in a notebook: text and a table; a picture from an entry point, if one is there.

The engine draws nothing. A package that can draw registers a function under the entry-point group
``tokentrip.renderers``, named after what it draws; it is looked up when a notebook asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

GROUP = "tokentrip.renderers"


def mime_bundle(
    kind: str, result: object, header: Sequence[str], rows: Iterable[Sequence[object]]
) -> dict[str, str]:
    """MIME types to content: plain text, an HTML table, and an SVG picture where ``kind`` has a renderer."""
    bundle = {"text/plain": str(result), "text/html": html_table(header, rows)}
    picture = _picture(kind, result)
    if picture is not None:
        bundle["image/svg+xml"] = picture
        bundle["text/html"] = picture + bundle["text/html"]
    return bundle


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A plain HTML table; every cell is escaped."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _picture(kind: str, result: object) -> str | None:
    """What the registered renderer of a kind draws, or None without one."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=kind):
        return str(entry.load()(result))
    return None

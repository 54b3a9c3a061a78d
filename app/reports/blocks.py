"""The pieces of a report, as JSON: controls above, then headings, figures, tables and charts in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.query.refusal import refusal
from layouts.charts.figure import Figure
from tracer.errors import ConfigError

Block = dict[str, Any]
Option = tuple[str, str]


def heading(text: str) -> Block:
    """A heading of the second level."""
    return {"kind": "heading", "text": text}


def note(text: str) -> Block:
    """A paragraph."""
    return {"kind": "note", "text": text}


def alert(error: ConfigError) -> Block:
    """Why a part cannot be shown, in the engine's words."""
    return {"kind": "alert", "text": refusal(error)["text"]}


def counts(caption: str, rows: Iterable[tuple[str, str]]) -> Block:
    """Figures that sum a page up, each with its label."""
    return {"kind": "counts", "caption": caption, "rows": [list(row) for row in rows]}


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    marked: Iterable[int] = (),
    prose: bool = False,
    actions: Iterable[Block | None] = (),
) -> Block:
    """A table whose first column names its rows; ``marked`` rows stand out, ``prose`` wraps everywhere.

    ``actions`` has one per row, as :func:`action` makes them, or None.
    """
    return {
        "kind": "table",
        "caption": caption,
        "heads": list(heads),
        "rows": [list(row) for row in rows],
        "marked": list(marked),
        "prose": prose,
        "actions": list(actions),
    }


def action(text: str, changes: Mapping[str, str], *, says: str = "") -> Block:
    """A button that changes keys of the address; ``says`` is its name where the text does not suffice."""
    return {"text": text, "says": says or text, "set": dict(changes)}


def buttons(caption: str, actions: Iterable[Block]) -> Block:
    """A row of actions under a common name."""
    return {"kind": "buttons", "caption": caption, "actions": list(actions)}


def chart(name: str, figure: Figure, *, height: int = 320) -> Block:
    """A chart; ``name`` is what a screen reader says of it. A table beside it has its figures."""
    return {"kind": "chart", "name": name, "figure": figure, "height": height}


def picture(name: str, svg: str, files: Sequence[tuple[str, str]] = ()) -> Block:
    """A picture that carries its own text; ``files`` are (what to call it, where to save it from)."""
    return {"kind": "picture", "name": name, "svg": svg, "files": [list(file) for file in files]}


def number_control(key: str, label: str, value: float | None, *, least: float = 0, step: str = "1") -> Block:
    """A number; empty means the engine's default."""
    return {"kind": "number", "key": key, "label": label, "value": value, "least": least, "step": step}


def text_control(key: str, label: str, value: str) -> Block:
    """A line of text."""
    return {"kind": "text", "key": key, "label": label, "value": value}


def range_control(key: str, label: str, value: float, *, most: float, step: str) -> Block:
    """A slider from 0."""
    return {"kind": "range", "key": key, "label": label, "value": value, "most": most, "step": step}


def choice_control(key: str, label: str, value: str, options: Iterable[Option]) -> Block:
    """One of several (value, text)."""
    return {
        "kind": "choice",
        "key": key,
        "label": label,
        "value": value,
        "options": [list(o) for o in options],
    }


def file_control(
    key: str, label: str, name: str, *, accept: str, most_bytes: int, wrong: ConfigError | None
) -> Block:
    """A file that is sent with each question, or what is wrong with it; ``name`` is the one in use."""
    return {
        "kind": "file",
        "key": key,
        "label": label,
        "name": name,
        "accept": accept,
        "most_bytes": most_bytes,
        "wrong": "" if wrong is None else str(wrong),
    }


def job(text: str, start: str, without: str) -> Block:
    """A long count: a button that starts it, or why none can run here."""
    return {"kind": "job", "text": text, "start": start, "without": without}

"""The legend under a picture: what lines and marks mean, and who several tokens are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from layouts.scene.palette import TOKENS
from layouts.scene.token_tags import DOT_HEIGHT, KV_HEIGHT, Tag, dot_width, token_name
from layouts.svg.hop import BUSY_WIDTH
from layouts.svg.token_marks import draw_mark

if TYPE_CHECKING:
    from layouts.scene.scene import Scene
    from layouts.svg.pen import Pen

LEGEND_HEIGHT, ROW_HEIGHT = 40.0, 24.0
MAX_NAMED = 24
LINKS = (("nvlink", "NVLink"), ("ib", "InfiniBand"))
Entry = tuple[str, str, int | None]
"""What is drawn, its words, and the number of the token it stands for."""


def legend_height(scene: Scene, width: float) -> float:
    """Room for the legend of a picture."""
    return LEGEND_HEIGHT + ROW_HEIGHT * (len(_rows(scene, width)) - 1)


def legend(scene: Scene, left: float, y: float, width: float, pen: Pen) -> Iterator[str]:
    """The legend's rows from ``y`` down."""
    for number, row in enumerate(_rows(scene, width)):
        x = left
        for kind, text, token in row:
            yield _sample(kind, x, y + ROW_HEIGHT * number, token, pen)
            start = x + (34 if kind else 0)
            yield pen.text(start, y + ROW_HEIGHT * number + 4, text, "soft", 12)
            x += _entry_width(scene, kind, text)


def notes(scene: Scene) -> list[str]:
    """Notes for several tokens: states of dots, when dots become a count, when colours repeat."""
    found = ["ring: at its home", "hollow: at a relay", "×n: n tokens, where their dots do not fit"]
    if len(scene.tokens) > len(TOKENS):
        found.append(f"colours repeat every {len(TOKENS)} tokens, numbers never")
    return found


def _rows(scene: Scene, width: float) -> list[list[Entry]]:
    """Entries broken into rows that fit."""
    if not scene.multi_token:
        one: list[Entry] = [*((kind, text, None) for kind, text in LINKS), ("dot", "the token", None)]
        return [[*one, ("kv", "its K/V (outline: a copy)", None)]]
    more = len(scene.tokens) - MAX_NAMED
    entries: list[Entry] = [
        *((kind, text, None) for kind, text in LINKS),
        ("busy", "busiest link", None),
        ("kept", "K/V of a token, or of ×n", None),
        ("lent", "a copy of it", None),
        *(
            ("token", token_name(token, replicas=scene.replicas), token.index)
            for token in scene.tokens[:MAX_NAMED]
        ),
        *(("", note, None) for note in notes(scene)),
        *((("", f"{more} more tokens are not named here", None),) if more > 0 else ()),
    ]
    rows: list[list[Entry]] = [[]]
    used = 0.0
    for entry in entries:
        wide = _entry_width(scene, *entry[:2])
        if rows[-1] and used + wide > width:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += wide
    return rows


def _entry_width(scene: Scene, kind: str, text: str) -> float:
    """Width of an entry; tokens stand in columns."""
    letters = len(text)
    if kind == "token":
        letters = max(len(token_name(each, replicas=scene.replicas)) for each in scene.tokens[:MAX_NAMED])
    return (34 if kind else 0) + 7 * letters + 24


def _sample(kind: str, x: float, y: float, token: int | None, pen: Pen) -> str:
    if kind == "token":
        tag = Tag(0, dot_width(f"{token}"), f"{token}", "copy", token)
        return draw_mark(x + 28 - tag.width, y - DOT_HEIGHT / 2, tag, DOT_HEIGHT, pen)
    if kind in ("kept", "lent"):
        return draw_mark(x + 8, y - KV_HEIGHT / 2, Tag(0, 20, "0", kind), KV_HEIGHT, pen)
    if kind == "busy":
        return pen.line(f"M{x:g} {y:g}h26", "soft", BUSY_WIDTH)
    return pen.swatch(kind, x, y) if kind else ""

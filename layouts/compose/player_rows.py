"""What the player reads of a trip, row by row: a class is a row, its fields are the names on both sides.

Rows of which a trip has thousands are sent as columns, one list per field: the names are then sent once.
``app/assets/core/scene.js`` makes rows of them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Row = TypeVar("Row", bound=DataclassInstance)


@dataclass(frozen=True, slots=True)
class MoveRow:
    """A transfer of a hop, see :class:`layouts.scene.scene.Move`.

    ``bytes_text`` and ``time`` are what the table says, ``seconds`` is the same time as a number.
    """

    src: int
    dst: int
    bytes: int
    bytes_text: str
    seconds: float
    time: str
    tier: str
    role: str
    why: str
    phase: int
    on_rail: bool


@dataclass(frozen=True, slots=True)
class RiderRow:
    """What a move of several tokens carries: words, and the token when it is one."""

    text: str
    token: int | None


@dataclass(frozen=True, slots=True)
class DotRow:
    """Where a token is, see :class:`layouts.scene.scene.Marks`."""

    rank: int
    state: str


@dataclass(frozen=True, slots=True)
class TagRow:
    """A mark with words in a GPU's box, see :class:`layouts.scene.token_tags.Tag`."""

    rank: int
    x: float
    width: float
    text: str
    look: str
    token: int | None


@dataclass(frozen=True, slots=True)
class CounterRow:
    """Totals since landing, or of a whole trip. Several tokens share collectives and have no comm ops."""

    gpus_touched: int
    node_crossings: int
    comm_ops: int | None
    bytes: int
    bytes_text: str


@dataclass(frozen=True, slots=True)
class LinkWords:
    """A link, and what is said of it."""

    src: int
    dst: int
    text: str


def columns(kind: type[Row], rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Rows of one kind as a list per field.

    >>> columns(DotRow, [DotRow(8, "home"), DotRow(3, "copy")])
    {'rank': [8, 3], 'state': ['home', 'copy']}
    """
    return {field.name: [getattr(row, field.name) for row in rows] for field in fields(kind)}

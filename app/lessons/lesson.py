"""What a chapter consists of, and how chapters look things up in trips."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from app.exports.formats import endings_for
from app.exports.html_player import player_values
from layouts.scene.scene import Question
from tracer.trip.trips import Trips

if TYPE_CHECKING:
    from layouts import Scene
    from tracer.trip.trip import Trip


@dataclass(frozen=True, slots=True)
class Lesson:
    """One chapter, told about a trip: read, predict on the map, then see.

    ``hop`` is what the map shows before the answer, ``reveal`` what it shows after. ``query`` opens the
    same trip elsewhere.
    """

    query: dict[str, str]
    trip: Trip
    read: tuple[str, ...]
    question: Question
    after: str
    hop: int
    reveal: int


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter's address, its title, and how it is made."""

    slug: str
    title: str
    build: Callable[[], Lesson]


def live_trip(trip: Trip, scene: Scene, query: Mapping[str, str], reveal: int) -> dict[str, Any]:
    """A trip for the player, the address that opens it at the hop revealed, and what it can be saved as."""
    return {
        "open": urlencode({**query, "hop": reveal}, safe=","),
        "exports": endings_for(Trips.of(trip)),
        "trip": player_values(scene),
    }


def ask(text: str, answer: object, wrong: Iterable[object], explain: str) -> Question:
    """A question whose options are shuffled the same way every time; options equal to the answer go."""
    right = _text(answer)
    others = list(dict.fromkeys(_text(each) for each in wrong))
    options = [right, *(each for each in others if each != right)][:4]
    if all(option.replace(",", "").isdigit() for option in options):
        options.sort(key=lambda option: int(option.replace(",", "")))
    else:
        Random(text).shuffle(options)
    return Question(text, tuple(options), right, explain)


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def find_hop(trip: Trip, kind: str, layer: int | None = None) -> int:
    """Index of the first hop of a kind, in a layer when one is given."""
    return next(
        index
        for index, hop in enumerate(trip.hops)
        if hop.kind == kind and (layer is None or hop.layer == layer)
    )

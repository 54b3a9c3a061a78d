"""The stamp in an exported file: its scenario, its counts and a digest, so that it can be checked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.exports.pixel_stamp import PIXELS, put_text, take_text
from tracer.errors import ConfigError
from tracer.trip.export.mermaid import MAX_CHARACTERS

if TYPE_CHECKING:
    from tracer.trip.trips import Trips

_FORMS = {
    ".svg": ("<metadata>tokentrip {}</metadata>", re.compile(r"<metadata>tokentrip (.*?)</metadata>")),
    ".html": ("<!-- tokentrip {} -->", re.compile(r"<!-- tokentrip (.*?) -->")),
    ".mmd": ("%% tokentrip {}\n", re.compile(r"%% tokentrip (.*)\n")),
    ".dot": ("// tokentrip {}\n", re.compile(r"// tokentrip (.*)\n")),
    ".graphml": ("<!-- tokentrip {} -->\n", re.compile(r"<!-- tokentrip (.*?) -->\n")),
}
_PLACES = {
    ".svg": re.compile(r"<svg\b[^>]*>"),
    ".html": re.compile(r"<head>"),
    ".mmd": re.compile(r"^\w.*\n"),
    ".dot": re.compile(r"^\w.*\n"),
    ".graphml": re.compile(r"^<graphml\b[^>]*>\n"),
}


@dataclass(frozen=True, slots=True)
class Stamp:
    """``source`` is the preset or file the picture was made from, None when flags changed it.

    A picture of a K/V hand-over has its decode pool as well, and says in ``whole`` whether all of the
    prompt moves; its ``log`` holds the totals. ``tokens`` are (replica, position) pairs where the picture
    has several; ``log`` is then their totals. ``digest`` is of the file without its stamp; pixels differ from
    machine to machine with the fonts, so ``drawn_from`` is the digest of the SVG that they were made of.
    """

    source: str | None
    hop: int | None
    scenario: dict[str, Any]
    log: dict[str, Any]
    digest: str
    decode_source: str | None = None
    decode: dict[str, Any] | None = None
    whole: bool = False
    tokens: list[list[int]] | None = None
    drawn_from: str | None = None


def digest_of(content: str | bytes) -> str:
    """Digest of a picture without its stamp."""
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    return hashlib.sha256(data).hexdigest()[:16]


def stamped(
    content: str | bytes, suffix: str, trips: Trips, *, source: str | None, hop: int | None
) -> str | bytes:
    """The file with its stamp; a format without room for one stays as it is."""
    from app.exports.formats import format_of

    values: dict[str, Any] = {
        "source": source,
        "hop": hop,
        "scenario": trips.scenario.to_dict(),
        "log": totals_of(trips),
    }
    if trips.multi_token:
        values["tokens"] = [[trip.scenario.replica, trip.scenario.position] for trip in trips.trips]
    return sealed(content, suffix, values, lambda: format_of(Path("x.svg"))(trips, hop))


def sealed(
    content: str | bytes, suffix: str, values: dict[str, Any], drawn_from: Callable[[], str | bytes]
) -> str | bytes:
    """The file with ``values``, fields of :class:`Stamp`, and its digest in it.

    ``drawn_from`` gives the SVG behind a file of pixels; nothing else asks for it.
    """
    stamp = values | {"digest": digest_of(content)}
    if isinstance(content, bytes):
        stamp["drawn_from"] = digest_of(drawn_from())
        return put_text(content, suffix, json.dumps(stamp)) if suffix in PIXELS else content
    return _marked(content, suffix, stamp) if suffix in _FORMS else content


def _marked(text: str, suffix: str, stamp: dict[str, Any]) -> str:
    # No "--" or "<" may stand inside a comment or a tag, and both may be written as JSON escapes.
    packed = json.dumps(stamp, separators=(",", ":")).replace("<", "\\u003c").replace("--", "-\\u002d")
    packed = packed.replace("&", "\\u0026").replace(">", "\\u003e")
    mark = _FORMS[suffix][0].format(packed)
    place = _PLACES.get(suffix)
    found = place.search(text) if place is not None else None
    at = found.end() if found is not None else 0
    whole = text[:at] + mark + text[at:]
    return text if suffix == ".mmd" and len(whole) > MAX_CHARACTERS else whole


def totals_of(trips: Trips) -> dict[str, Any]:
    """The counts that a stamp holds: a trip's log, or what several tokens' trips add up to."""
    return trips.totals if trips.multi_token else trips.log.to_dict()


def read_stamp(content: str | bytes, suffix: str, name: str) -> tuple[Stamp, str | bytes]:
    """The stamp of a file, and what it holds without it.

    Raises:
        ConfigError: when the file has none, or one that does not read.
    """
    found = take_text(content, suffix) if isinstance(content, bytes) else _take_mark(content, suffix)
    if found is None:
        raise ConfigError("--check", name, "carries no scenario", "export it anew with tokentrip export")
    packed, bare = found
    try:
        stamp = Stamp(**json.loads(packed))
    except (ValueError, TypeError) as error:
        raise ConfigError(
            "--check", name, f"carries a scenario that does not read: {error}", "export it anew"
        ) from error
    return stamp, bare


def _take_mark(text: str, suffix: str) -> tuple[str, str] | None:
    found = _FORMS[suffix][1].search(text) if suffix in _FORMS else None
    return None if found is None else (found[1], text[: found.start()] + text[found.end() :])

"""What an exported file says of itself: its scenario, its counts and a digest, so that it can be checked."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.exporters.mermaid import MAX_CHARACTERS
from tracer.several import Trips

if TYPE_CHECKING:
    from app.journey import Journey

_FORMS = {
    ".svg": ("<metadata>tokentrip {}</metadata>", re.compile(r"<metadata>tokentrip (.*?)</metadata>")),
    ".html": ("<!-- tokentrip {} -->", re.compile(r"<!-- tokentrip (.*?) -->")),
    ".mmd": ("%% tokentrip {}\n", re.compile(r"%% tokentrip (.*)\n")),
    ".dot": ("// tokentrip {}\n", re.compile(r"// tokentrip (.*)\n")),
}
_PLACES = {
    ".svg": re.compile(r"<svg\b[^>]*>"),
    ".html": re.compile(r"<head>"),
    ".mmd": re.compile(r"^\w.*\n"),
    ".dot": re.compile(r"^\w.*\n"),
}


@dataclass(frozen=True, slots=True)
class Stamp:
    """``source`` is the preset or file the picture was made from, None when flags changed it.

    A picture of the K/V's last trip has its decode pool as well, and says in ``whole`` whether all of the
    prompt moves; its ``log`` holds the totals. ``tokens`` are (replica, position) pairs where the picture
    has several; ``log`` is then their totals.
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


def can_carry(suffix: str) -> bool:
    """Whether files of this ending have a place for a stamp."""
    return suffix in _FORMS


def digest_of(text: str) -> str:
    """Digest of a picture's text without its stamp."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def stamped(text: str, suffix: str, journey: Journey, *, source: str | None, hop: int | None) -> str:
    """The text with its stamp; what has no room for one stays as it is."""
    values: dict[str, Any] = {
        "source": source,
        "hop": hop,
        "scenario": journey.scenario.to_dict(),
        "log": totals_of(journey),
    }
    if isinstance(journey, Trips):
        values["tokens"] = [[trip.scenario.replica, trip.scenario.position] for trip in journey.trips]
    return sealed(text, suffix, values)


def sealed(text: str, suffix: str, values: dict[str, Any]) -> str:
    """The text with ``values``, fields of :class:`Stamp`, and its digest in it."""
    if suffix not in _FORMS:
        return text
    stamp = values | {"digest": digest_of(text)}
    # No "--" or "<" may stand inside a comment or a tag, and both may be written as JSON escapes.
    packed = json.dumps(stamp, separators=(",", ":")).replace("<", "\\u003c").replace("--", "-\\u002d")
    packed = packed.replace("&", "\\u0026").replace(">", "\\u003e")
    mark = _FORMS[suffix][0].format(packed)
    place = _PLACES.get(suffix)
    found = place.search(text) if place is not None else None
    at = found.end() if found is not None else 0
    whole = text[:at] + mark + text[at:]
    return text if suffix == ".mmd" and len(whole) > MAX_CHARACTERS else whole


def totals_of(journey: Journey) -> dict[str, Any]:
    """The counts that a stamp holds: a trip's log, or what several tokens' trips add up to."""
    return journey.totals if isinstance(journey, Trips) else journey.log.to_dict()


def read_stamp(text: str, suffix: str, name: str) -> tuple[Stamp, str]:
    """The stamp of a file, and its text without it.

    Raises:
        ConfigError: when the file has none, or one that does not read.
    """
    pattern = _FORMS[suffix][1] if suffix in _FORMS else None
    found = pattern.search(text) if pattern is not None else None
    if found is None:
        raise ConfigError("--check", name, "carries no scenario", "export it anew with tokentrip export")
    try:
        values = json.loads(found[1])
        stamp = Stamp(**values)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            "--check", name, f"carries a scenario that does not read: {error}", "export it anew"
        ) from error
    return stamp, text[: found.start()] + text[found.end() :]

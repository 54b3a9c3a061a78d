"""What an exported file says of itself: its scenario, its counts and a digest, so that it can be checked."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError
from tracer.exporters.mermaid import MAX_CHARACTERS

if TYPE_CHECKING:
    from tracer.trip import Trip

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
    prompt moves; its ``log`` holds the totals.
    """

    source: str | None
    hop: int | None
    scenario: dict[str, Any]
    log: dict[str, Any]
    digest: str
    decode_source: str | None = None
    decode: dict[str, Any] | None = None
    whole: bool = False


def can_carry(suffix: str) -> bool:
    """Whether files of this ending have a place for a stamp."""
    return suffix in _FORMS


def digest_of(text: str) -> str:
    """Digest of a picture's text without its stamp."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def stamped(text: str, suffix: str, trip: Trip, *, source: str | None, hop: int | None) -> str:
    """The text with its stamp; what has no room for one stays as it is."""
    scenario, log = trip.scenario.to_dict(), trip.log.to_dict()
    return sealed(text, suffix, {"source": source, "hop": hop, "scenario": scenario, "log": log})


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

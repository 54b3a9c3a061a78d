"""Blocks of a Markdown document that the engine fills: counts, tables, logs and pictures.

A block starts with ``<!-- tokentrip: KIND SCENARIO [hop=N] [file=NAME.svg] [tokens=0,5] -->`` and ends
with ``<!-- /tokentrip -->``; what stands between is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.query.trips import ONE_TOKEN, as_asked, follow, one_trip
from tracer.errors import ConfigError, listed, nearest
from tracer.trip.log import totals_line

if TYPE_CHECKING:
    from tracer.trip.trip import Trip
    from tracer.trip.trips import Trips

_BLOCK = re.compile(
    r"(<!-- tokentrip:(?P<head>[^\n]*?)-->\n)(?P<body>.*?)(?P<end><!-- /tokentrip -->)", re.DOTALL
)
_OPEN = re.compile(r"<!-- tokentrip:")
MAX_DOCUMENT_CHARACTERS = 4_000_000


@dataclass(frozen=True, slots=True)
class Filled:
    """A document with its blocks filled, the lines whose blocks changed, and pictures to write beside it."""

    text: str
    changed: tuple[str, ...]
    pictures: tuple[tuple[Path, str], ...]


def fill_document(text: str, name: str, folder: Path) -> Filled:
    """Fill every block of a document; scenario files and pictures are relative to ``folder``.

    Raises:
        ConfigError: naming the document and the line, for a block that is not closed, an unknown kind,
            or a scenario that does not load.
    """
    if len(text) > MAX_DOCUMENT_CHARACTERS:
        raise ConfigError(
            name, f"{len(text):,} characters", f"is over {MAX_DOCUMENT_CHARACTERS:,}", "split it"
        )
    changed: list[str] = []
    pictures: list[tuple[Path, str]] = []
    if len(_OPEN.findall(text)) != len(_BLOCK.findall(text)):
        raise ConfigError(name, "<!-- tokentrip: …", "has no end", "close the block with <!-- /tokentrip -->")

    def replace(block: re.Match[str]) -> str:
        """The block with its body written anew."""
        line = text.count("\n", 0, block.start()) + 1
        body = _body(block["head"].split(), f"{name}:{line}", folder, pictures)
        if body != block["body"]:
            changed.append(f"line {line}: {block['head'].strip()}")
        return block[1] + body + block["end"]

    return Filled(_BLOCK.sub(replace, text), tuple(changed), tuple(pictures))


def _body(words: list[str], where: str, folder: Path, pictures: list[tuple[Path, str]]) -> str:
    kinds: dict[str, Callable[[Trips], str]] = {"counts": _counts, "log": _log}
    options = dict(word.split("=", 1) for word in words if "=" in word)
    plain = [word for word in words if "=" not in word]
    known = [*kinds, "table", "picture"]
    if len(plain) != 2 or plain[0] not in known:
        raise ConfigError(
            where,
            " ".join(words),
            f"must be {listed(known)}, then a scenario",
            nearest(plain[0] if plain else "", known),
        )
    trips = _trips(plain[1], folder, options.get("tokens"), where)
    if plain[0] == "table":
        return _table(one_trip(trips, where, "table", ONE_TOKEN))
    if plain[0] == "picture":
        return _picture(trips, plain[1], options, where, folder, pictures)
    return kinds[plain[0]](trips)


def _trips(source: str, folder: Path, tokens: str | None, where: str) -> Trips:
    from tracer.scenario.files import SUFFIXES, load_scenario

    scenario = load_scenario(folder / source if Path(source).suffix.lower() in SUFFIXES else source)
    return follow(scenario, tokens, where)


def _counts(trips: Trips) -> str:
    return f"{totals_line(trips)}\n"


def _log(trips: Trips) -> str:
    return f"```text\n{as_asked(trips)}\n```\n"


def _table(trip: Trip) -> str:
    word = trip.scenario.cluster.domain_word
    rows = [
        f"| layer | hop | GPUs touched | {word} crossings | comm ops | bytes |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    rows += [
        f"| {hop.layer} | {hop.kind} | {tally.gpus_touched} | {tally.node_crossings} "
        f"| {tally.comm_ops} | {tally.bytes:,} |"
        for hop, tally in zip(trip.hops, trip.tallies, strict=True)
    ]
    return "\n".join(rows) + "\n"


def _picture(
    trips: Trips,
    source: str,
    options: dict[str, str],
    where: str,
    folder: Path,
    pictures: list[tuple[Path, str]],
) -> str:
    from app.exports.formats import format_of
    from app.exports.stamp import stamped

    hops = len(trips.steps)
    file = options.get("file", f"{Path(source).stem}.svg")
    hop = options.get("hop", "")
    if (
        not file.endswith(".svg")
        or Path(file).is_absolute()
        or not (hop == "" or (hop.isascii() and hop.isdigit() and int(hop) < hops))
    ):
        rule = f"must name an .svg file beside the document and a hop from 0 to {hops - 1}"
        raise ConfigError(where, f"file={file} hop={hop}", rule, "write file=trip.svg hop=0")
    number = int(hop) if hop else None
    content = format_of(Path(file))(trips, number)
    another = "tokens" in options and not trips.multi_token
    stamp_source = None if another else source
    text = str(stamped(content, ".svg", trips, source=stamp_source, hop=number))
    pictures.append((folder / file, text))
    return f"![Map of {source}: {totals_line(trips)}]({file})\n"

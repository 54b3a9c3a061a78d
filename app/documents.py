"""Blocks of a Markdown document that the engine fills: counts, tables, logs and pictures.

A block starts with ``<!-- tokentrip: KIND SCENARIO [hop=N] [file=NAME.svg] -->`` and ends with
``<!-- /tokentrip -->``; what stands between is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, listed, nearest

if TYPE_CHECKING:
    from tracer.trip import Trip

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
        line = text.count("\n", 0, block.start()) + 1
        body = _body(block["head"].split(), f"{name}:{line}", folder, pictures)
        if body != block["body"]:
            changed.append(f"line {line}: {block['head'].strip()}")
        return block[1] + body + block["end"]

    return Filled(_BLOCK.sub(replace, text), tuple(changed), tuple(pictures))


def _body(words: list[str], where: str, folder: Path, pictures: list[tuple[Path, str]]) -> str:
    kinds: dict[str, Callable[[Trip], str]] = {"counts": _counts, "table": _table, "log": _log}
    options = dict(word.split("=", 1) for word in words if "=" in word)
    plain = [word for word in words if "=" not in word]
    known = [*kinds, "picture"]
    if len(plain) != 2 or plain[0] not in known:
        raise ConfigError(
            where,
            " ".join(words),
            f"must be {listed(known)}, then a scenario",
            nearest(plain[0] if plain else "", known),
        )
    trip = _trip(plain[1], folder)
    if plain[0] == "picture":
        return _picture(trip, plain[1], options, where, folder, pictures)
    return kinds[plain[0]](trip)


def _trip(source: str, folder: Path) -> Trip:
    from tracer.presets import SUFFIXES, load_scenario
    from tracer.trip import take_trip

    return take_trip(load_scenario(folder / source if Path(source).suffix.lower() in SUFFIXES else source))


def _counts(trip: Trip) -> str:
    from tracer.trip_text import log_line

    return f"{log_line(trip.log, trip.scenario.cluster.island_word)}\n"


def _log(trip: Trip) -> str:
    return f"```text\n{trip}\n```\n"


def _table(trip: Trip) -> str:
    word = trip.scenario.cluster.island_word
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
    trip: Trip,
    source: str,
    options: dict[str, str],
    where: str,
    folder: Path,
    pictures: list[tuple[Path, str]],
) -> str:
    from app.export_formats import format_of
    from app.stamp import stamped
    from tracer.trip_text import log_line

    file = options.get("file", f"{Path(source).stem}.svg")
    hop = options.get("hop", "")
    if (
        not file.endswith(".svg")
        or Path(file).is_absolute()
        or not (hop == "" or (hop.isascii() and hop.isdigit() and int(hop) < len(trip.hops)))
    ):
        rule = f"must name an .svg file beside the document and a hop from 0 to {len(trip.hops) - 1}"
        raise ConfigError(where, f"file={file} hop={hop}", rule, "write file=trip.svg hop=0")
    number = int(hop) if hop else None
    content = format_of(Path(file))(trip, number)
    pictures.append((folder / file, stamped(str(content), ".svg", trip, source=source, hop=number)))
    return f"![Map of {source}: {log_line(trip.log, trip.scenario.cluster.island_word)}]({file})\n"

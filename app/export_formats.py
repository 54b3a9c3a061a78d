"""What a trip can be written as, by the ending of the file."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, nearest

if TYPE_CHECKING:
    from tracer.trip import Trip

Writer = Callable[["Trip", int | None], str | bytes]


def _text(target: str) -> Writer:
    """A writer that ignores the hop: ``module:function`` of one trip, imported when it is called."""

    def write(trip: Trip, hop: int | None) -> str:
        module, function = target.split(":")
        content: str = getattr(import_module(module), function)(trip)
        return content

    return write


def _svg(trip: Trip, hop: int | None) -> str:
    from layouts import build_scene, render_svg

    return render_svg(build_scene(trip), hop=hop)


FORMATS: dict[str, Writer] = {
    ".svg": _svg,
    ".json": _text("tracer.exporters.json_trip:to_json"),
    ".csv": _text("tracer.exporters.csv_trip:to_csv"),
    ".seq.mmd": _text("tracer.exporters.mermaid:to_mermaid_sequence"),
    ".mmd": _text("tracer.exporters.mermaid:to_mermaid"),
    ".dot": _text("tracer.exporters.graph:to_dot"),
    ".graphml": _text("tracer.exporters.graph:to_graphml"),
}


def format_of(target: Path) -> Writer:
    """The writer of a file's ending, the longest that fits.

    Raises:
        ConfigError: when nothing ends so.
    """
    name = target.name.lower()
    for ending in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(ending):
            return FORMATS[ending]
    raise ConfigError(
        "--to", str(target), "has no format that ends so", nearest(target.suffix, list(FORMATS))
    )

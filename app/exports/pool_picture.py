"""The K/V hand-over as a file: SVG with its stamp, PNG, or its numbers as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError, nearest

if TYPE_CHECKING:
    from tracer.serving.kv_handover import KvHandover

ENDINGS = (".svg", ".png", ".json")


def draw_pools(moved: KvHandover, target: Path) -> str | bytes:
    """The content of a file with this ending.

    Raises:
        ConfigError: when nothing ends so, or resvg is not installed.
    """
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        fix = nearest(ending, list(ENDINGS))
        raise ConfigError("--draw", str(target), "has no format of the last trip that ends so", fix)
    if ending == ".json":
        return json.dumps(moved.to_dict(), indent=1)
    from layouts.pictures.pool_map import build_pool_map
    from layouts.pictures.pool_svg import render_pool_svg

    picture = build_pool_map(moved)
    if ending == ".svg":
        return render_pool_svg(picture)
    from layouts.svg.raster import PNG_ZOOM, png_of_svg

    return png_of_svg(render_pool_svg(picture, "light"), PNG_ZOOM)


def handover_totals(moved: KvHandover) -> dict[str, Any]:
    """The totals that a picture shows, for its stamp."""
    return {"bytes": moved.bytes, "pieces": len(moved.pieces), "crossings": moved.crossings}

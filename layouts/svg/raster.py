"""Pixels of our own SVG: PNG by resvg, GIF frames by Pillow. No browser."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layouts.scene.palette import LIGHT, TOKENS
from layouts.svg.map import FONTS, render_svg
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from layouts.scene.scene import Scene

PNG_ZOOM = 2
GIF_MILLISECONDS, GIF_SHORTEST_MILLISECONDS, GIF_LAST_MILLISECONDS = 1_200, 100, 2_000
GIF_TOTAL_MILLISECONDS = 10_000
"""What a GIF lasts at most; its hops share what the last frame leaves."""
MAX_GIF_HOPS = 80
FAMILY = "Inter"
FONT_FILES = sorted(str(path) for path in (Path(__file__).parent / "fonts").glob("*.ttf"))
"""Text comes out alike on every host; the host's own fonts serve only letters that these lack."""


def to_png(scene: Scene, hop: int | None = None, *, zoom: int = PNG_ZOOM) -> bytes:
    """A PNG of a hop, or of the whole trip, ``zoom`` pixels per unit; light colours.

    Raises:
        ConfigError: when resvg is not installed.
    """
    return png_of_svg(render_svg(scene, hop, "light"), zoom)


def png_of_svg(svg: str, zoom: int) -> bytes:
    """The pixels of an SVG of ours in fixed colours, ``zoom`` pixels per unit.

    Raises:
        ConfigError: when resvg is not installed.
    """
    try:
        import resvg_py
    except ModuleNotFoundError as error:
        raise _missing("resvg", ".png") from error
    svg = svg.replace(f'font-family="{FONTS}"', f'font-family="{FAMILY}"')
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=zoom, font_family=FAMILY, font_files=FONT_FILES))


def to_gif(scene: Scene, hop: int | None = None) -> bytes:
    """One frame per hop and one of the whole trip, in ten seconds or less, repeated; with ``hop``, up to it.

    Raises:
        ConfigError: when Pillow or resvg is not installed, or the trip has over ``MAX_GIF_HOPS`` hops.
    """
    last = len(scene.hops) - 1 if hop is None else hop
    if last >= MAX_GIF_HOPS:
        rule = f"a GIF has room for {MAX_GIF_HOPS} hops"
        raise ConfigError(
            "--to .gif", f"{last + 1} hops", rule, "give --hop for the trip up to one, or .html"
        )
    image = _pillow()
    hops: list[int | None] = list(range(last + 1))
    shown = [*hops, None] if hop is None else hops
    fills = [fill for fill, _ in TOKENS] if scene.multi_token else []
    palette = _palette(image, [*LIGHT.values(), *fills])
    frames = [_frame(image, palette, to_png(scene, each, zoom=1)) for each in shown]
    each = (GIF_TOTAL_MILLISECONDS - GIF_LAST_MILLISECONDS) // max(1, len(frames) - 1)
    each = max(GIF_SHORTEST_MILLISECONDS, min(GIF_MILLISECONDS, each) // 10 * 10)
    times = [each] * (len(frames) - 1) + [GIF_LAST_MILLISECONDS]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0)
    return out.getvalue()


def _pillow() -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise _missing("Pillow", ".gif") from error
    return Image


def _frame(image: Any, palette: Any, png: bytes) -> Any:
    picture = image.open(io.BytesIO(png)).convert("RGB")
    return picture.quantize(palette=palette, dither=image.Dither.NONE)


def _palette(image: Any, colours: list[str]) -> Any:
    """The picture's own colours and their blends with white, so that each keeps its meaning in a GIF."""
    table: list[int] = []
    for colour in colours:
        channels = bytes.fromhex(colour[1:])
        for share in (1.0, 0.8, 0.6, 0.4, 0.2):
            table += [round(share * value + (1 - share) * 255) for value in channels]
    palette = image.new("P", (1, 1))
    palette.putpalette(table)
    return palette


def _missing(package: str, ending: str) -> ConfigError:
    return ConfigError("--to", ending, f"needs {package}", "install it: pip install 'tokentrip[app]'")

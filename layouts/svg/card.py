"""The social card: 1,200 by 630 units, which previews of links show: the trip's numbers beside its map."""

from __future__ import annotations

import re

from layouts.scene.scene import Scene
from layouts.svg.map import MARGIN, MIN_WIDTH, document, render_svg, title_height
from layouts.svg.pen import Pen

WIDTH, HEIGHT, EDGE = 1200.0, 630.0, 48.0
MAP_WIDTH, MAP_HEIGHT = 690.0, 566.0
LETTERS, SMALL_LETTERS = 20, 38
"""Letters of a line of the name, and of the smaller lines, that fit beside the map."""
_FRAME = re.compile(r' viewBox="[^"]+" width="[^"]+" height="[^"]+"')


def render_card(scene: Scene, hop: int | None = None) -> str:
    """An SVG of 1,200 × 630 units in light colours: what is shown, the totals, and the map.

    Of a map that would be too small in the frame, the part around the token's home is shown, and said.
    """
    pen = Pen.of("light")
    what = "One token's trip" if hop is None else scene.hops[hop].words.title
    lines = [what, *scene.summary.split(" · ")]
    picture, whole = _picture(scene, hop)
    if not whole:
        lines.append("the map: the rows around its home")
    body = [f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" {pen.fill("page")}/>']
    y = EDGE + 48
    for part in _folded(scene.name, LETTERS)[:3]:
        body.append(pen.text(EDGE, y, part, "ink", 36, weight=600))
        y += 46
    y += 14
    for line in lines:
        for part in _folded(line, SMALL_LETTERS):
            body.append(pen.text(EDGE, y, part, "soft", 21))
            y += 32
    body += [pen.text(EDGE, HEIGHT - EDGE + 8, "tokentrip", "token", 24, weight=600), picture]
    return document(WIDTH, HEIGHT, "".join(body), pen, f"{scene.name}: {', '.join(lines)}")


def _picture(scene: Scene, hop: int | None) -> tuple[str, bool]:
    """The map without its title and legend, fitted; and whether all of it is there."""
    wide = max(scene.width, MIN_WIDTH) + 2 * MARGIN
    high = scene.height + MARGIN
    most = wide * MAP_HEIGHT / MAP_WIDTH
    top, whole = title_height(scene) - MARGIN / 2, high <= 2 * most
    if not whole:
        home = scene.gpu_boxes().get(scene.home)
        above = max(0.0, min((home.y if home else 0.0) - most / 2, high - most))
        top, high = top + above, most
    scale = min(MAP_WIDTH / wide, MAP_HEIGHT / high)
    across, down = wide * scale, high * scale
    room = (
        f' x="{WIDTH - EDGE - across:g}" y="{(HEIGHT - down) / 2:g}" width="{across:g}" height="{down:g}" '
        f'viewBox="0 {top:g} {wide:g} {high:g}"'
    )
    return _FRAME.sub(room, render_svg(scene, hop, "light"), count=1), whole


def _folded(text: str, letters: int) -> list[str]:
    """Lines of at most so many letters, broken at spaces and hyphens."""
    lines, line = [], ""
    for part in re.findall(r"[^\s-]+-?\s*", text):
        if line and len(line + part.rstrip()) > letters:
            lines.append(line.rstrip())
            line = ""
        line += part
    return [each if len(each) <= letters else each[: letters - 1] + "…" for each in [*lines, line.rstrip()]]

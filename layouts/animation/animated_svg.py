"""The trip as one SVG that plays by itself, also inside ``<img>``: SMIL on one clock, no script.

A reader without SMIL (a rasteriser, an old viewer) sees the whole trip: what plays is hidden until the
clock says otherwise, and the whole trip is shown until the clock hides it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from layouts.animation.clockwork import Beat, Clockwork, begins, during, seconds
from layouts.animation.reel import Reel, heavy_link, kv_in_time, numbered_mark, resting_tokens
from layouts.scene.token_tags import landed
from layouts.svg.captions import busiest_line, counters, hop_title, trip_title
from layouts.svg.hop import draw_chips, draw_link, draw_relays, hop_links, used_links
from layouts.svg.legend import legend, legend_height
from layouts.svg.map import LINE_HEIGHT, MARGIN, MIN_WIDTH, document, map_parts, title_height
from layouts.svg.pen import StyleSheetPen, untouched_rules
from layouts.svg.token_marks import token_marks

if TYPE_CHECKING:
    from layouts.scene.scene import HopScene, Scene


MAX_HOPS = 80
TRACK_HEIGHT = 24.0
EASE = ' calcMode="spline" keyTimes="0;1" keySplines=".5 0 .5 1"'
SQUARES = {"kv_exchange": "kv", "weight_pull": "soft"}
_GPU = re.compile(r'(<g class="gpu" data-rank="(\d+)">)')


def render_animated_svg(scene: Scene, hop: int | None = None, theme: str = "auto") -> str:
    """The picture that plays: the whole trip, or one hop over and over when ``hop`` is given.

    ``theme`` is as for :func:`layouts.svg.map.render_svg`.

    Raises:
        ValueError: for an unknown theme, a hop that the trip does not have, or more than ``MAX_HOPS`` hops.
    """
    if hop is not None and not 0 <= hop < len(scene.hops):
        raise ValueError(f"hop={hop} must be from 0 to {len(scene.hops) - 1}")
    hops = scene.hops if hop is None else scene.hops[hop : hop + 1]
    if len(hops) > MAX_HOPS:
        raise ValueError(f"{len(hops)} hops are over {MAX_HOPS}, the most that one animated picture plays")
    paths = dict.fromkeys(move.path for each in scene.hops for move in each.moves if move.path)
    links = {path: f"l{number}" for number, path in enumerate(paths)}
    reel = Reel(scene, hops, Clockwork.of(hops), scene.gpu_boxes(), StyleSheetPen.for_theme(theme), links)
    inner = max(scene.width, MIN_WIDTH)
    foot = legend_height(scene, inner)
    width, height = inner + 2 * MARGIN, scene.height + title_height(scene) + TRACK_HEIGHT + foot + MARGIN
    body = "".join(_body(reel, width, height, foot))
    return document(width, height, body, reel.pen, f"{scene.name}, played: {scene.summary}")


def _body(reel: Reel, width: float, height: float, foot: float) -> Iterator[str]:
    pen = reel.pen
    if not pen.own_style:
        yield f"<style>{untouched_rules(pen.colours)}</style>"
    yield f'<rect width="{width:g}" height="{height:g}" {pen.fill("page")}/>'
    yield reel.clock.element()
    yield from _definitions(reel)
    yield f'<g transform="translate({MARGIN:g} {title_height(reel.scene):g})">'
    yield _map(reel)
    yield from kv_in_time(reel)
    yield _whole_trip(reel)
    for hop, beat in reel.beats():
        yield _hop(reel, hop, beat)
    yield from resting_tokens(reel)
    yield f"<g {pen.fill('token')}>{''.join(_movers(reel))}</g></g>"
    inner = width - 2 * MARGIN
    yield from _track(reel, MARGIN, inner, height - foot - 8)
    yield from legend(reel.scene, MARGIN, height - foot + 16, inner, pen)


def _definitions(reel: Reel) -> Iterator[str]:
    """Each link of the trip once; its width is set where it is used."""
    moves = {move.path: move for hop in reel.scene.hops for move in hop.moves if move.path}
    yield "<defs>"
    for path, name in reel.links.items():
        link = draw_link(moves[path], reel.pen).replace(' stroke-width="3"', "")
        yield link.replace("<path", f'<path id="{name}"', 1)
    yield "</defs>"


def _map(reel: Reel) -> str:
    """The map: each GPU looks untouched until a token touches it, and is lit from then on."""
    since = {rank: 0.0 for hop in reel.past() for rank in hop.newly_touched}
    for hop, beat in reel.beats():
        for rank in hop.newly_touched:
            since.setdefault(rank, beat.arrive)

    def timed(group: re.Match[str]) -> str:
        """The GPU, pale until it is touched."""
        start = since.get(int(group[2]), 0.0)
        return group[1] + (during([(0.0, start)], "off", "class") if start else "")

    return _GPU.sub(timed, "".join(map_parts(reel.scene, reel.pen, touched=frozenset(since))))


def _whole_trip(reel: Reel) -> str:
    """Every link and the totals, while nothing plays."""
    scene = reel.scene
    words = _caption(reel, trip_title(scene), scene.summary, busiest_line(scene, None))
    hidden = during([(0.0, reel.clock.played)], "none")
    links = "".join(f'<use href="#{reel.links[move.path]}"/>' for move in used_links(scene))
    home = heavy_link(reel, scene.busiest) + "".join(token_marks(scene, landed(scene), reel.boxes, reel.pen))
    return f'<g>{words}<g opacity=".75" stroke-width="2">{links}</g>{home}{hidden}</g>'


def _hop(reel: Reel, hop: HopScene, beat: Beat) -> str:
    """What is shown all through a hop: its name, the counters after it, its links, relays and bytes."""
    scene = reel.scene
    links = "".join(f'<use href="#{reel.links[move.path]}"/>' for move in hop_links(scene, hop))
    parts = (
        during([(beat.start, beat.end)]),
        _caption(reel, hop_title(hop), counters(scene, hop), busiest_line(scene, hop)),
        f'<g stroke-width="3">{links}</g>' if links else "",
        heavy_link(reel, hop.busiest),
        *draw_relays(scene, hop, reel.boxes, reel.pen),
        *draw_chips(scene, hop, reel.boxes, reel.pen),
    )
    return f'<g display="none">{"".join(parts)}</g>'


def _caption(reel: Reel, title: str, line: str, busiest: str) -> str:
    """A title and a line or two under it, above the map."""
    pen, top = reel.pen, title_height(reel.scene)
    words = pen.text(0, 28 - top, title, "ink", 17, weight=600) + pen.text(
        0, 48 - top, escape(line), "soft", 13, raw=True
    )
    return words + (pen.text(0, 48 + LINE_HEIGHT - top, busiest, "soft", 13) if busiest else "")


def _movers(reel: Reel) -> Iterator[str]:
    """What travels, once per path and look: circles for the token, squares for K/V and weights."""
    starts_of: dict[tuple[str, str, str, tuple[int, ...]], list[float]] = {}
    for hop, beat in reel.beats():
        phases = max((move.phase + 1 for move in hop.moves), default=1)
        step = (beat.arrive - beat.start) / phases
        for move in hop.moves:
            if move.path:
                mark = (move.path, SQUARES.get(hop.kind, ""), seconds(step), move.tokens)
                starts_of.setdefault(mark, []).append(beat.start + move.phase * step)
    for (path, square, travel, tokens), starts in starts_of.items():
        yield _mover(reel, path, square, travel, starts, tokens)


def _mover(
    reel: Reel, path: str, square: str, travel: str, starts: list[float], tokens: tuple[int, ...]
) -> str:
    """One mark that is shown while it travels along a path, each time that a hop takes it."""
    when = f'begin="{begins(starts)}" dur="{travel}"'
    motion = f'<set attributeName="display" to="inline" {when}/><animateMotion path="{path}" {when}{EASE}/>'
    if reel.scene.multi_token:
        return f'<g display="none">{numbered_mark(tokens, square, reel.pen)}{motion}</g>'
    if square:
        look = reel.pen.fill(square)
        return f'<rect display="none" x="-6" y="-6" width="12" height="12" rx="2" {look}>{motion}</rect>'
    return f'<circle display="none" r="7">{motion}</circle>'


def _track(reel: Reel, x: float, width: float, y: float) -> Iterator[str]:
    """A line that fills as the trip goes on; an orange tick for each hop that crosses."""
    pen, played = reel.pen, reel.clock.played
    yield f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="2" {pen.fill("edge")}/>'
    yield (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="2" {pen.fill("soft")}>'
        f'<animate attributeName="width" from="0" to="{width:g}" begin="c.begin" '
        f'dur="{seconds(played)}"/></rect>'
    )
    ticks = "".join(
        f"M{x + width * beat.arrive / played:.1f} {y + 4:g}v7" for hop, beat in reel.beats() if hop.crossings
    )
    if ticks:
        yield pen.line(ticks, "ib", 3)

"""The trip as one HTML file with the explorer's player in it, which needs no network."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from app.es_modules import player_script
from layouts.compose.scene_json import scene_to_dict
from layouts.compose.scene_of_trip import build_scene
from layouts.svg.map import render_svg
from tracer.trip.hop import HopKind

if TYPE_CHECKING:
    from layouts.scene.scene import Scene
    from tracer.trip.trips import Trips

STYLES = ("style.css", "style_map.css", "style_trip.css")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main class="page">
<h1 class="unseen">{title}</h1>
<p class="subtitle">{subtitle}</p>
<noscript>{picture}</noscript>
<div class="trip"></div>
</main>
<script type="application/json" id="scene">{scene}</script>
<script>
{script}</script>
</body>
</html>
"""


def to_html(trips: Trips, hop: int | None = None) -> str:
    """The page. It opens at a hop, by default the landing; without scripts it shows the whole trip's map."""
    scene = build_scene(trips)
    whose = f"{len(scene.tokens)} tokens' trips" if scene.multi_token else "one token's trip"
    values = player_values(scene) | {"start": hop or 0}
    return PAGE.format(
        title=escape(f"{scene.name}: {whose}"),
        subtitle=escape(scene.subtitle),
        style=player_styles(),
        picture=render_svg(scene),
        # A "</script>" inside would end the element; "<" may be written as a JSON escape.
        scene=json.dumps(values, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        script=_embedded("the player's script", player_script()),
    )


def player_values(scene: Scene) -> dict[str, Any]:
    """What the player needs: the scene, and for the kinds of its hops short name and family."""
    kinds = {hop.kind: HopKind(hop.kind) for hop in scene.hops}
    names = {word: {"short": kind.short, "family": kind.family} for word, kind in kinds.items()}
    return scene_to_dict(scene) | {"kinds": names}


def player_styles() -> str:
    """The style sheets that a page with the player needs."""
    assets = files("app") / "assets"
    return "\n".join((assets / name).read_text(encoding="utf-8") for name in STYLES)


def _embedded(name: str, script: str) -> str:
    if "</script" in script:
        raise ValueError(f"{name} would end the script element that it is put into")
    return script

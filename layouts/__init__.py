"""Pictures: geometry as plain data, then one renderer per target.

``scene`` has the plain data and what places it on the map (``grid``: nodes and GPUs, ``paths``: transfers,
``marks`` and ``token_tags``: tokens); ``words`` tells each hop; ``compose`` puts them into one
:class:`~layouts.scene.scene.Scene` of n >= 1 tokens, and writes it as JSON; ``svg`` and ``animation`` draw
it. ``charts`` and ``pictures`` draw what is no trip. Nothing here imports a drawing or a serving package.
"""

from layouts.compose.scene_json import scene_to_dict
from layouts.compose.scene_of_trip import build_scene
from layouts.scene.scene import Scene
from layouts.svg.map import render_svg

__all__ = ["Scene", "build_scene", "render_svg", "scene_to_dict"]

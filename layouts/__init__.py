"""Pictures: geometry as plain data, then one renderer a target.

``grid`` places nodes and GPUs, ``paths`` routes transfers, ``marks`` says where the token is (``crowds``:
where several are), ``words`` tells each hop; ``build`` puts them into one
:class:`~layouts.scene.scene.Scene`, which ``svg`` and ``scene_json`` render. Nothing here imports a drawing
or a serving package.
"""

from layouts.compose.scene_json import scene_to_dict
from layouts.compose.scene_of_trip import build_scene
from layouts.scene.scene import Scene
from layouts.svg.map import render_svg

__all__ = ["Scene", "build_scene", "render_svg", "scene_to_dict"]

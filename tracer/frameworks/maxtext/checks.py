"""What MaxText refuses: a product of axes that is not the devices, two axes that take the rest."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tracer.frameworks.maxtext.flags import AXES
from tracer.frameworks.notes import Refusal

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request


def filled(request: Request, level: str, target: int | None) -> dict[str, int]:
    """The sizes of one level with its -1 filled in; ``target`` is None while the devices are not known.

    Raises:
        Refusal: where fill_unspecified_mesh_axes asserts.
    """
    settings = request.settings
    keys = {axis: f"{level}_{axis}_parallelism" for axis in AXES}
    sizes = {axis: settings.size(key) for axis, key in keys.items()}
    what, devices = ("DCN", "slices") if level == "dcn" else ("ICI", "devices per slice")
    for axis, size in sizes.items():
        if size == 0 or size < -1:
            raise Refusal(keys[axis], f"{what} axis {axis} must be -1 or at least 1, got {size}")
    rest = [axis for axis, size in sizes.items() if size == -1]
    product = prod(size for size in sizes.values() if size > 0)
    if len(rest) > 1:
        raise Refusal(
            keys[rest[1]],
            f"Found unspecified values (-1) for more than one {what} parallelism axis. At most one axis can "
            "be unspecified.",
        )
    if target is not None and (target % product if rest else target != product):
        given = next((axis for axis in AXES if settings.has(keys[axis])), AXES[1])
        raise Refusal(
            keys[given],
            f"Number of {devices} {target} does not match the product of the {what} parallelism {product}",
            mend=(*(keys[axis] for axis in AXES if settings.has(keys[axis])), "gpus"),
        )
    for axis in rest:
        sizes[axis] = 1 if target is None else target // product
    return sizes


def check_known(request: Request) -> None:
    """A custom mesh replaces the list of axes: it is another file."""
    if request.settings.text("custom_mesh_and_rule"):
        raise Refusal(
            "custom_mesh_and_rule",
            "names a file with axes of its own, which is not read here",
            otherwise="drop custom_mesh_and_rule for the default axes",
        )

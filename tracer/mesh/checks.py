"""What makes sizes and orders a mesh: they multiply up, leave nothing out, and agree under strict rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError, divisors, listed, whole_number
from tracer.mesh.axes import parse_order
from tracer.mesh.grid import RankGrid

if TYPE_CHECKING:
    pass


def grid_of_order(field: str, order: str, sizes: dict[str, int], known: tuple[str, ...]) -> RankGrid:
    """The grid of an order; axes of size 1 may be left out and are put last."""
    names = parse_order(field, order, known)
    for name in known:
        if name not in names and sizes[name] > 1:
            raise ConfigError(field, order, f"leaves out {name}={sizes[name]}", f"try '{order}-{name}'")
    names += tuple(name for name in known if name not in names)
    return RankGrid(names, tuple(sizes[name] for name in names))


def expert_sizes(stage_size: int, *, etp: int, ep: int, edp: int | None) -> dict[str, int]:
    """Sizes of the expert axes, checked to fill the stage."""
    whole_number("mesh.etp", etp)
    whole_number("mesh.ep", ep)
    choices = [
        size for size in divisors(stage_size // etp if stage_size % etp == 0 else stage_size) if size > 1
    ]
    fix = f"try {listed(choices) or 1} (Megatron: --expert-model-parallel-size)"
    if stage_size % etp:
        tries = listed(divisors(stage_size))
        raise ConfigError(
            "mesh.etp",
            etp,
            f"must divide the stage's {stage_size} ranks",
            f"try {tries} (Megatron: --expert-tensor-parallel-size)",
        )
    if stage_size % (etp * ep):
        rest = f"the stage's {stage_size} ranks" + (f" / etp {etp}" if etp > 1 else "")
        raise ConfigError("mesh.ep", ep, f"must divide {rest}", fix)
    left = stage_size // (etp * ep)
    if edp is not None and whole_number("mesh.edp", edp) != left:
        raise ConfigError(
            "mesh.edp",
            edp,
            f"must make etp·ep·edp the stage's {stage_size} ranks",
            f"leave it out, or say {left}",
        )
    return {"etp": etp, "ep": ep, "edp": left}

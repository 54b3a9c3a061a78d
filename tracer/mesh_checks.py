"""What makes sizes and orders a mesh: they multiply up, leave nothing out, and agree under strict rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.axes import parse_order
from tracer.errors import ConfigError, divisors, listed, whole_number
from tracer.rank_grid import RankGrid

if TYPE_CHECKING:
    from tracer.mesh import Mesh


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


def check_megatron(mesh: Mesh, expert_names: tuple[str, ...]) -> None:
    """Refuse pp groups that differ between Megatron's two full orders.

    Both orders run over the whole world; an expert order that does not place pp follows the dense
    order (before edp when pp stands before dp there, as ``--use-tp-pp-dp-mapping`` does, else last).
    pp groups are equal exactly when the stride of pp is.
    """
    if "pp" not in expert_names:
        dense_names = mesh.dense.names
        inside = dense_names.index("pp") < dense_names.index("dp")
        cut = expert_names.index("edp") if inside and "edp" in expert_names else len(expert_names)
        expert_names = (*expert_names[:cut], "pp", *expert_names[cut:])
    stride = 1
    for name in expert_names[: expert_names.index("pp")]:
        stride *= mesh.size_of(name)
    dense_stride = mesh.dense.stride_of("pp")
    if mesh.stages > 1 and stride != dense_stride:
        raise ConfigError(
            "mesh.strict",
            "megatron",
            f"needs the same pp groups in both views, but pp strides {dense_stride} in the dense order "
            f"{'-'.join(mesh.dense.names)} and {stride} in the expert order {'-'.join(expert_names)}",
            "put pp last in the order, or pick sizes for which etp·ep equals the ranks inside pp",
        )

"""The groups nanotron makes: one table of ranks, ``ep-pp-dp-cp-tp`` slowest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.axis_groups import AxisGroups, View, grid
from tracer.frameworks.common import check_heads, linear, node_notes
from tracer.frameworks.nanotron.checks import CP, EP, check_sizes
from tracer.frameworks.settings import Reading
from tracer.scenario.plan import Sp

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan


def read(request: Request) -> Reading:
    """The table of ranks of nanotron; ``dp`` is taken as what is left over where it is not given.

    Raises:
        Refusal: where nanotron raises.
    """
    settings = request.settings
    tp, cp, pp, ep = (settings.size(dest) for dest in ("tp", CP, "pp", EP))
    dp = settings.maybe("dp")
    world = request.gpus
    if world is None:
        world = tp * cp * pp * dp if dp is not None else request.need_gpus("nanotron")
    check_sizes(request, world, tp=tp, cp=cp, dp=dp or max(1, world // (tp * cp * pp)), pp=pp, ep=ep)
    ranks = grid(tp=tp, cp=cp, dp=world // (tp * cp * pp), pp=pp)
    check_heads(request, "tp", tp, "num_attention_heads ({heads}) must be divisible by tp ({tp})")
    groups = {name: AxisGroups(ranks, (name,)) for name in ("tp", "cp", "dp", "pp")}
    groups |= {
        "mp": AxisGroups(ranks, ("tp", "pp")),
        "dp_cp": AxisGroups(ranks, ("cp", "dp")),
        "ep": AxisGroups(ranks, ()),
    }
    scattered = settings.text("tp_mode").upper() == "REDUCE_SCATTER" and tp > 1
    return Reading(
        View(ranks, {axis: (axis,) for axis in ("tp", "cp", "dp", "pp")}),
        View(ranks, {"etp": ("tp",), "ep": (), "edp": ("cp", "dp")}),
        groups,
        {"sp": "megatron" if scattered else "off", "contract": "tp", "embedding": "vocab_parallel"},
        linear(request.experts, 1, EP, ""),
        tuple(node_notes(request, groups["tp"], settings.name("tp"), groups["ep"])),
    )


def write(mesh: Mesh, plan: Plan) -> list[str]:
    """Nanotron's keys for a mesh; its experts have no parallelism of their own."""
    words = ["--dp", str(mesh.dp), "--pp", str(mesh.stages), "--tp", str(mesh.tp)]
    words += ["--context-parallel-size", str(mesh.cp)] if mesh.cp > 1 else []
    return words + (["--tp-mode", "REDUCE_SCATTER"] if plan.sp is Sp.MEGATRON and mesh.tp > 1 else [])

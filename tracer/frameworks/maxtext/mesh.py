"""The mesh MaxText makes: every axis has a part inside a slice (ICI) and a slower one between (DCN)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tracer.frameworks.axis_groups import AxisGroups, View
from tracer.frameworks.common import check_heads, linear, node_notes
from tracer.frameworks.maxtext.checks import check_known, filled
from tracer.frameworks.maxtext.flags import AXES
from tracer.frameworks.notes import Note
from tracer.frameworks.settings import Reading
from tracer.mesh.grid import RankGrid

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan

_TENSOR = ("tensor_sequence", "tensor", "autoregressive")
_CONTEXT = ("context_autoregressive", "context_usp_ulysses", "context")
_DATA = ("fsdp_transpose", "fsdp", "data", "diloco")
_EP = "ici_expert_parallelism"


def read(request: Request) -> Reading:
    """Ranks row-major over the ICI axes of a slice, then over the DCN axes of the slices.

    The expert axis carries part of the batch in attention, so it is data parallelism there: EP does
    multiply the devices.

    Raises:
        Refusal: where MaxText raises.
    """
    check_known(request)
    ici, dcn = _sizes(request)
    names = [f"ici_{axis}" for axis in reversed(AXES)] + [f"dcn_{axis}" for axis in reversed(AXES)]
    ranks = RankGrid(tuple(names), (*reversed(ici.values()), *reversed(dcn.values())))
    dense = {
        "tp": _both(_TENSOR), "cp": _both(_CONTEXT), "dp": _both(("expert", *_DATA)),
        "pp": _both(("pipeline",)),
    }  # fmt: skip
    expert = {"etp": _both(_TENSOR), "ep": _both(("expert",)), "edp": _both((*_CONTEXT, *_DATA))}
    tp = ici["tensor"] * dcn["tensor"]
    check_heads(request, "ici_tensor_parallelism", tp, "heads ({heads}) must be divisible by tensor ({tp})")
    ep = ici["expert"] * dcn["expert"]
    experts = request.settings.maybe("num_experts") or request.experts
    plan: dict[str, object] = {"sp": "off", "kv_exchange": "all_gather"}
    plan |= {"contract": "tp"} if ep == 1 else {"contract": "ep", "dispatch": "low_latency"}
    return Reading(
        View(ranks, dense),
        View(ranks, expert),
        {axis: AxisGroups(ranks, _both((axis,))) for axis in AXES if ici[axis] * dcn[axis] > 1},
        plan,
        linear(experts, ep, _EP, "num_experts ({experts}) must be divisible by the expert axis ({ep})"),
        tuple(_notes(request, ranks, expert["ep"])),
    )


def write(mesh: Mesh, _: Plan) -> list[str]:
    """MaxText's keys for a mesh inside one slice: data parallelism is fsdp, and EP carries a part of it."""
    ep = mesh.ep if mesh.dp % mesh.ep == 0 else 1
    sizes = {
        "pipeline": mesh.stages, "fsdp": mesh.dp // ep, "context": mesh.cp, "tensor": mesh.tp, "expert": ep,
    }  # fmt: skip
    return [f"ici_{axis}_parallelism={size}" for axis, size in sizes.items()]


def _sizes(request: Request) -> tuple[dict[str, int], dict[str, int]]:
    """Sizes of both levels; a rest that nothing gives needs the number of devices."""
    settings, gpus = request.settings, request.gpus
    slices = settings.maybe("num_slices")
    slices = slices if slices and slices > 0 else None
    dcn = filled(request, "dcn", slices)
    inner = filled(request, "ici", None)
    open_inner = any(settings.size(f"ici_{axis}_parallelism") == -1 for axis in AXES)
    open_outer = slices is None and any(settings.size(f"dcn_{axis}_parallelism") == -1 for axis in AXES)
    if gpus is None:
        gpus = request.need_gpus("MaxText") if open_inner else prod(inner.values()) * prod(dcn.values())
    if open_outer and not open_inner:
        product = prod(inner.values())
        if gpus % product == 0 and gpus // product % prod(dcn.values()) == 0:
            dcn = filled(request, "dcn", gpus // product)
    return filled(request, "ici", gpus // prod(dcn.values()) if gpus % prod(dcn.values()) == 0 else gpus), dcn


def _both(axes: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of axes in a slice, then between slices."""
    return (*(f"ici_{axis}" for axis in axes), *(f"dcn_{axis}" for axis in axes))


def _notes(request: Request, ranks: RankGrid, ep: tuple[str, ...]) -> list[Note]:
    tp = AxisGroups(ranks, _both(_TENSOR))
    notes = node_notes(request, tp, "ici_tensor_parallelism", AxisGroups(ranks, ep))
    if request.settings.text("hardware") == "tpu":
        notes.append(
            Note(
                "device_order_assumed",
                "ranks are laid out row-major, as JAX does on GPUs; on TPUs they follow the wiring of the "
                "slice",
                "hardware=gpu for GPUs; on TPUs read the sizes, not the rank numbers",
            )
        )
    return notes

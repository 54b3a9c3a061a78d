"""The groups TensorRT-LLM makes: one grid for attention, and one for experts over its TP ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.axis_groups import AxisGroups, View, grid
from tracer.frameworks.common import (
    check_heads,
    ep_all_reduce,
    experts_unknown,
    idle_gpus,
    linear,
    node_notes,
    shared_expert,
)
from tracer.frameworks.notes import Note, Refusal
from tracer.frameworks.settings import Reading
from tracer.frameworks.tensorrt_llm.balancer import (
    assigned_slots,
    balanced,
    balancer_notes,
    balancer_slots,
)
from tracer.frameworks.tensorrt_llm.checks import check_sizes
from tracer.frameworks.tensorrt_llm.flags import CLUSTER, MOE_EP, MOE_TP, TP
from tracer.frameworks.tensorrt_llm.sizes import Sizes, resolve, tp_before_cp
from tracer.scenario.placement import Placement

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.grid import RankGrid
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan


def read(request: Request) -> Reading:
    """TensorRT-LLM's Mapping: ``world = tp·pp·cp`` and ``moe_tp·moe_ep·cluster = tp`` (Helix: ``tp·cp``).

    Raises:
        Refusal: where Mapping raises.
    """
    sizes = resolve(request)
    check_sizes(request, sizes)
    old = tp_before_cp(request.version)
    dense_grid, expert_grid = _grids(sizes, old)
    if not sizes.attention_dp:
        rule = "num_heads ({heads}) must be divisible by tp_size ({tp})"
        check_heads(request, TP, sizes.tp, rule)
    tp = ("tp",)
    dense = View(
        dense_grid,
        {
            "tp": () if sizes.attention_dp else tp,
            "cp": ("cp",),
            "dp": (*(tp if sizes.attention_dp else ()), "worker"),
            "pp": ("pp",),
        },
    )
    expert = _expert_view(sizes, expert_grid)
    plan, planned = _plan(request, sizes)
    # modeling_deepseekv3.py: whole with attention DP, else sliced and summed in the block's all-reduce.
    plan |= shared_expert(request, dense.size("tp"), "whole" if sizes.dwdp > 1 else "merged")
    notes = [*_notes(request, sizes, dense.walk("tp"), expert.walk("ep"), old), *planned]
    return Reading(
        dense,
        expert,
        _groups(sizes, dense_grid, expert_grid),
        plan,
        _placement(request, sizes),
        tuple(notes),
        assigned_slots(request, sizes.moe_ep * sizes.cluster),
    )


def write(mesh: Mesh, plan: Plan) -> list[str]:
    """TensorRT-LLM's flags for a mesh: with data parallelism every TP rank is an attention replica."""
    words = ["--tp_size", str(mesh.tp * mesh.dp)]
    words += ["--pp_size", str(mesh.stages)] if mesh.stages > 1 else []
    words += ["--cp_size", str(mesh.cp)] if mesh.cp > 1 else []
    words += ["--ep_size", str(mesh.ep), "--moe_tensor_parallel_size", str(mesh.etp)] if mesh.ep > 1 else []
    return words + (["--enable_attention_dp"] if mesh.dp > 1 else [])


def _grids(sizes: Sizes, old: bool) -> tuple[RankGrid, RankGrid]:
    """The dense grid in either order, and the expert grid over the same ranks.

    MoE ranks come from the TP rank; with Helix and ATTN2D CP ranks are TP ranks of the FFN. With
    Ulysses each CP rank is a lane of its own.
    """
    inner = {"tp": sizes.tp, "cp": sizes.cp} if old else {"cp": sizes.cp, "tp": sizes.tp}
    dense = grid(**inner, pp=sizes.pp, worker=sizes.workers)
    moe = {"moe_ep": sizes.moe_ep, "moe_cluster": sizes.cluster, "moe_tp": sizes.moe_tp}
    if sizes.dwdp > 1:  # groups of consecutive global ranks, whatever the workers are
        return dense, grid(dwdp=sizes.dwdp, group=dense.size // sizes.dwdp, **moe)
    lanes = sizes.tp * sizes.cp // (sizes.moe_ep * sizes.cluster * sizes.moe_tp)
    layout = {**moe, "lane": lanes} if old else {"lane": lanes, **moe}
    return dense, grid(**layout, pp=sizes.pp, worker=sizes.workers)


def _expert_view(sizes: Sizes, expert: RankGrid) -> View:
    if sizes.dwdp > 1:
        return View(expert, {"etp": (), "ep": ("dwdp",), "edp": ("group",)})
    return View(expert, {"etp": ("moe_tp",), "ep": ("moe_ep", "moe_cluster"), "edp": ("lane", "worker")})


def _groups(sizes: Sizes, dense: RankGrid, expert: RankGrid) -> dict[str, AxisGroups]:
    """Mapping's groups under its names."""
    found = {name: AxisGroups(dense, (name,)) for name in ("tp", "cp", "pp")}
    found |= {name: AxisGroups(expert, (name,)) for name in ("moe_tp", "moe_ep", "moe_cluster")}
    if sizes.dwdp > 1:
        found["dwdp"] = AxisGroups(expert, ("dwdp",))
    return found


def _placement(request: Request, sizes: Sizes) -> Placement | None:
    experts = request.experts
    if sizes.dwdp > 1:
        return _dwdp_placement(request, sizes)
    ep = sizes.moe_ep * sizes.cluster
    slots = balancer_slots(request)
    if slots is not None and experts is not None:
        return balanced(slots, experts, ep)
    rule = "num_experts ({experts}) must be divisible by moe_ep_size ({ep})"
    return linear(experts, sizes.moe_ep * sizes.cluster, MOE_EP, rule, (MOE_EP, MOE_TP))


def _dwdp_placement(request: Request, sizes: Sizes) -> Placement | None:
    """Local experts ``[num_prefetch·r, + num_experts_per_worker)``; ranges may overlap."""
    settings, experts = request.settings, request.experts
    if experts is None:
        return None
    share = settings.inner("dwdp_config", "num_experts_per_worker") or experts // sizes.dwdp
    step = settings.inner("dwdp_config", "num_prefetch_experts") or share
    last = step * (sizes.dwdp - 1) + share
    if share < 1 or last != experts or step > share or share * sizes.dwdp > 1 << 20:
        raise Refusal(
            "dwdp_config",
            f"local ranges of {share} experts, {step} apart, over {sizes.dwdp} workers end at {last}, and "
            f"the model has {experts}",
            otherwise=f"make num_experts_per_worker and num_prefetch_experts {experts // sizes.dwdp or 1}",
        )
    slots = [step * rank + place for rank in range(sizes.dwdp) for place in range(share)]
    return Placement.table(slots, sizes.dwdp, experts)


def _plan(request: Request, sizes: Sizes) -> tuple[dict[str, object], list[Note]]:
    """How rows move between attention and experts, and the layers of each stage."""
    plan: dict[str, object] = {"sp": "off", "embedding": "vocab_parallel"}
    plan["kv_exchange"] = {"RING": "ring", "ULYSSES": "ulysses"}.get(sizes.cp_type, "all_gather")
    partition = request.settings.whole_list("pp_partition")
    if partition and request.model is not None:
        plan["stage_layers"] = list(partition)
    notes = []
    if sizes.cp > 1 and sizes.cp_type not in ("RING", "ULYSSES"):
        notes.append(
            Note(
                "cp_kind_not_expressible",
                f"{sizes.cp_type} context parallelism does not exchange K/V the way the scenario does; its "
                "groups are right",
                "read the cp groups, not the kv_exchange hop",
            )
        )
    if sizes.dwdp > 1:
        return plan | {"contract": "dwdp"}, notes
    ep = sizes.moe_ep * sizes.cluster
    if ep == 1 and not sizes.attention_dp and sizes.moe_tp == sizes.tp:
        return plan | {"contract": "tp"}, notes
    if not sizes.attention_dp and ep > 1:
        notes.append(ep_all_reduce("TensorRT-LLM", "without attention DP"))
    return plan | {"contract": "ag_rs"}, notes


def _notes(request: Request, sizes: Sizes, tp: AxisGroups, ep: AxisGroups, old: bool) -> list[Note]:
    notes = node_notes(request, tp, request.settings.name(TP), ep)
    if sizes.cp > 1 and sizes.tp > 1:
        notes.append(
            Note(
                "tp_cp_order",
                f"{'TP' if old else 'CP'} is the fastest axis here; PR #10350 (2026-01) swapped TP and CP",
                f"say --framework-version {'1.2.0' if old else '1.1.0'} for the other order",
            )
        )
    if sizes.moe_ep > 1 and sizes.moe_tp > 1:
        notes.append(
            Note(
                "moe_ep_is_fastest",
                "EP ranks are consecutive and expert-TP ranks lie apart: the opposite of Megatron and SGLang",
                "compare with tokentrip diff before moving sizes from one framework to another",
            )
        )
    if sizes.attention_dp:
        notes.append(
            Note(
                "attention_dp_is_all_of_tp",
                f"attention DP takes all {sizes.tp} TP ranks; there is no partial attention DP",
                "drop enable_attention_dp for tensor-parallel attention",
            )
        )
    if request.settings.has(CLUSTER):
        name = request.settings.name(CLUSTER)
        notes.append(Note("deprecated_flag", f"{name} is deprecated", "use --ep_size instead"))
    notes += balancer_notes(request)
    notes += idle_gpus(request, sizes.world, "TensorRT-LLM", "--tp_size")
    return notes + experts_unknown(request, sizes.moe_ep)

"""The groups SGLang makes: two grids over the ranks of one stage, stages, then whole replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.axis_groups import AxisGroups, View, grid
from tracer.frameworks.common import (
    check_heads,
    ep_all_reduce,
    ep_no_factor,
    experts_unknown,
    idle_gpus,
    linear,
    node_notes,
    not_contiguous,
    shared_expert,
    with_redundant,
)
from tracer.frameworks.fp8_blocks import check_fp8_blocks
from tracer.frameworks.notes import Note, Refusal
from tracer.frameworks.settings import Reading
from tracer.frameworks.sglang.checks import EP, TP, check_sizes
from tracer.frameworks.sglang.flags import EP_SPANNING_BACKENDS
from tracer.frameworks.sglang.sizes import Sizes, resolve
from tracer.model.weights import WeightPart
from tracer.scenario.plan import Contract, DispatchMode

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.grid import RankGrid
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.placement import Placement
    from tracer.scenario.plan import Plan


def read(request: Request) -> Reading:
    """SGLang's grids: ``tp_size = attn_tp·attn_cp·attn_dp = moe_tp·moe_ep·moe_dp``.

    ``tp_rank = (attn_dp_rank·attn_cp + attn_cp_rank)·attn_tp + attn_tp_rank``, and a rank of the world is
    ``tp_size·pp_rank + tp_rank``; a data-parallel replica is a world of its own.

    Raises:
        Refusal: where SGLang raises.
    """
    sizes, notes = resolve(request)
    check_sizes(request, sizes)
    _check_world(request, sizes)
    check_heads(
        request, TP, sizes.attn_tp, "attention heads ({heads}) must be divisible by attention TP ({tp})"
    )
    check_fp8_blocks(request, TP, _fp8_slices(request, sizes), merged_may_differ=False)
    attention = grid(
        attn_tp=sizes.attn_tp, attn_cp=sizes.attn_cp, attn_dp=sizes.attn_dp, pp=sizes.pp, dp=sizes.dp
    )
    moe = grid(moe_tp=sizes.moe_tp, moe_ep=sizes.ep, moe_dp=sizes.moe_dp, pp=sizes.pp, dp=sizes.dp)
    dense = View(attention, {"tp": ("attn_tp",), "cp": ("attn_cp",), "dp": ("attn_dp", "dp"), "pp": ("pp",)})
    expert = View(moe, {"etp": ("moe_tp",), "ep": ("moe_ep",), "edp": ("moe_dp", "dp")})
    plan, planned = _plan(request, sizes)
    stages, staged = _stages(request, sizes.pp)
    return Reading(
        dense,
        expert,
        _groups(attention, moe, sizes),
        plan | shared_expert(request, sizes.attn_tp, _shared_tp(sizes)) | stages,
        _placement(request, sizes),
        (*notes, *_notes(request, sizes, attention, expert.walk("ep")), *planned, *staged),
    )


def _fp8_slices(request: Request, sizes: Sizes) -> dict[WeightPart, int]:
    """How many ranks cut each part; a single shared expert joins the routed ones, and is cut as they are."""
    fused = request.model is not None and request.model.shared_experts == 1
    merged = sizes.moe_tp if fused else sizes.tp
    return {
        WeightPart.ATTENTION: sizes.attn_tp,
        WeightPart.DENSE: sizes.dense_tp or sizes.tp,
        WeightPart.SHARED: merged if _shared_tp(sizes) == "merged" else 1,
        WeightPart.EXPERTS: sizes.moe_tp,
    }


def write(mesh: Mesh, plan: Plan) -> list[str]:
    """SGLang's flags for a mesh: attention's TP, CP and DP multiply to ``--tp-size``."""
    words = ["--tp-size", str(mesh.replica_size * mesh.dp)]
    words += ["--pp-size", str(mesh.stages)] if mesh.stages > 1 else []
    words += ["--attn-dp-size", str(mesh.dp)] if mesh.dp > 1 else []
    words += ["--attn-cp-size", str(mesh.cp)] if mesh.cp > 1 else []
    words += ["--dcp-size", str(plan.dcp)] if plan.dcp > 1 else []
    words += ["--ep-size", str(mesh.ep)] if mesh.ep > 1 else []
    words += ["--moe-dp-size", str(mesh.edp)] if mesh.edp > 1 else []
    words += ["--moe-dense-tp-size", "1"] if plan.dense_tp == 1 else []
    if plan.contract is Contract.DWDP:
        words += ["--dwdp-size", str(mesh.ep)]
    elif plan.contract is Contract.EP:
        slow = plan.dispatch is DispatchMode.LOW_LATENCY
        words += ["--moe-a2a-backend", "deepep", "--deepep-mode", "low_latency" if slow else "normal"]
    return words


def _check_world(request: Request, sizes: Sizes) -> None:
    gpus = request.gpus
    if gpus is not None and sizes.world > gpus:
        raise Refusal(
            TP,
            f"dp_size * tp_size * pp_size = {sizes.world} GPUs are needed and {gpus} are there",
            mend=(TP, "dp_size", "pp_size", "gpus"),
        )


def _groups(attention: RankGrid, moe: RankGrid, sizes: Sizes) -> dict[str, AxisGroups]:
    """SGLang's groups. Attention DP has none of its own: its peers meet in the TP group."""
    lanes = grid(dcp=sizes.dcp, rest=attention.size // sizes.dcp)
    # Where CP ranks outnumber MoE DP ranks they must share tokens: the name moe_dp is then the CP group.
    moe_dp = (
        AxisGroups(attention, ("attn_cp",)) if sizes.attn_cp > sizes.moe_dp else AxisGroups(moe, ("moe_dp",))
    )
    return {
        "tp": AxisGroups(attention, ("attn_tp", "attn_cp", "attn_dp")),
        "attn_tp": AxisGroups(attention, ("attn_tp",)),
        "attn_cp": AxisGroups(attention, ("attn_cp",)),
        "dcp": AxisGroups(lanes, ("dcp",)),
        "moe_tp": AxisGroups(moe, ("moe_tp",)),
        "moe_ep": AxisGroups(moe, ("moe_ep",)),
        "moe_dp": moe_dp,
        "pp": AxisGroups(attention, ("pp",)),
    }


def _placement(request: Request, sizes: Sizes) -> Placement | None:
    redundant = request.settings.size("ep_num_redundant_experts")
    if request.experts is not None and redundant:
        return with_redundant(request.experts, redundant, sizes.ep)
    return linear(
        request.experts, sizes.ep, EP, "num_experts ({experts}) must be divisible by moe_ep_size ({ep})"
    )


def _plan(request: Request, sizes: Sizes) -> tuple[dict[str, object], list[Note]]:
    """How rows move between attention and experts."""
    zigzag = request.settings.text("cp_strategy") != "interleave"
    plan: dict[str, object] = {"sp": "off", "kv_exchange": "all_gather", "embedding": "vocab_parallel"}
    plan["landing"] = "zigzag" if zigzag else "contiguous"
    if sizes.dense_tp == 1:
        plan["dense_tp"] = 1
    notes = []
    if sizes.dcp > 1 and sizes.attn_tp % sizes.dcp:
        notes.append(_dcp_beyond_tp(sizes))
    elif sizes.dcp > 1:
        plan["dcp"] = sizes.dcp
    if sizes.backend in EP_SPANNING_BACKENDS and sizes.attn_tp > 1:
        # Rows are scattered over attention's TP group before dispatch, and gathered after combine.
        plan["sp"] = "before_dispatch"
    if not zigzag and sizes.attn_cp > 1:
        notes.append(_INTERLEAVE)
    if sizes.dwdp > 1:
        return plan | {"contract": "dwdp"}, notes
    if sizes.backend not in ("none", ""):
        slow = request.settings.text("deepep_mode") == "low_latency"
        return plan | {"contract": "ep", "dispatch": "low_latency" if slow else "high_throughput"}, notes
    if sizes.ep == 1 and sizes.moe_tp == sizes.attn_tp:
        return plan | {"contract": "tp"}, notes
    if sizes.attn_tp == sizes.tp and sizes.ep > 1:
        notes.append(ep_all_reduce("SGLang", "without attention DP and an all-to-all backend"))
    return plan | {"contract": "ag_rs"}, notes


def _shared_tp(sizes: Sizes) -> str:
    """All-to-all back ends replicate a shared expert (``_shared_expert_use_tp1``).

    Else it is sliced, and one all-reduce sums it with the routed experts.
    """
    return "whole" if sizes.backend not in ("none", "") or sizes.dwdp > 1 else "merged"


def _dcp_beyond_tp(sizes: Sizes) -> Note:
    return Note(
        "dcp_not_expressible",
        f"a DCP group of {sizes.dcp} ranks reaches over attention TP groups of {sizes.attn_tp}: the scenario "
        "has none, and its room for K/V is that without DCP",
        "read the group dcp; for the room choose a --dcp-size that divides attention TP",
    )


_INTERLEAVE = Note(
    "interleave_not_expressible",
    "--cp-strategy interleave gives token i to CP rank i % cp; the scenario lands tokens in contiguous runs",
    "read the groups; for the landing use --cp-strategy zigzag",
)


def _stages(request: Request, pp: int) -> tuple[dict[str, object], list[Note]]:
    """Layers of each stage: SGLANG_PP_LAYER_PARTITION, or even with the last stages one layer longer.

    Source: ``sglang/srt/distributed/utils.py`` (get_pp_indices) of the 0.5.23 wheel.
    """
    layers = request.model.layers if request.model is not None else None
    given = request.env.get("SGLANG_PP_LAYER_PARTITION", "")
    if layers is not None and pp > layers:
        raise Refusal("pp_size", f"pp_size ({pp}) is more than the model's {layers} layers")
    if pp == 1:
        return {}, []
    if given:
        stages = _partition(given, pp, layers)
        shown = ", ".join(map(str, stages))
        note = Note(
            "stage_layers_given",
            f"SGLANG_PP_LAYER_PARTITION gives the {pp} stages {shown} layers",
            "drop it for an even split",
        )
        return {"stage_layers": stages}, [note]
    if layers is None or layers % pp == 0:
        return {}, []
    longer = layers % pp
    return {"stage_layers": [layers // pp] * (pp - longer) + [layers // pp + 1] * longer}, []


def _partition(given: str, pp: int, layers: int | None) -> list[int]:
    words = given.split(",")
    stages = [int(word) for word in words if word.strip().isdecimal() and len(word) < 8]
    rule = ""
    if len(stages) != len(words):
        rule = f"Invalid partition string: {given}"
    elif len(stages) != pp:
        rule = f"len(partitions)={len(stages)} does not match pp_size={pp}."
    elif layers is not None and sum(stages) != layers:
        rule = f"sum(partitions)={sum(stages)} does not match num_hidden_layers={layers}."
    if rule:
        raise Refusal("pp_size", rule, otherwise="mend SGLANG_PP_LAYER_PARTITION, or drop it")
    return stages


def _notes(request: Request, sizes: Sizes, attention: RankGrid, ep: AxisGroups) -> list[Note]:
    stage = AxisGroups(attention, ("attn_tp",))
    notes = node_notes(request, stage, request.settings.name(TP), ep)
    notes += ep_no_factor("SGLang", "dp_size*tp_size*pp_size", sizes.ep, sizes.world)
    notes += not_contiguous(
        ep,
        f"moe_tp = {sizes.moe_tp} is the fastest axis, so EP ranks lie {sizes.moe_tp} apart",
        f"--ep-size {sizes.tp // sizes.moe_dp} makes moe_tp 1",
    )
    notes += idle_gpus(request, sizes.world, "SGLang", "--tp-size or --dp-size")
    if sizes.attn_cp > sizes.moe_dp:
        notes.append(
            Note(
                "moe_dp_is_attn_cp",
                f"attn_cp ({sizes.attn_cp}) is larger than moe_dp ({sizes.moe_dp}): the group called moe_dp "
                "is the CP group",
                "read moe_dp groups as CP groups, or give --moe-dp-size the CP size",
            )
        )
    has_none = request.model is not None and not request.model.shared_experts
    if sizes.attn_dp > 1 and _shared_tp(sizes) == "merged" and not has_none:
        notes.append(
            Note(
                "shared_tp_is_the_stage",
                f"a shared expert is sliced over all {sizes.tp} ranks of a stage, wider than attention's TP "
                f"({sizes.attn_tp}); the scenario slices it over attention's TP, so a GPU holds more of it",
                "an all-to-all backend keeps it whole on each GPU",
            )
        )
    if sizes.attn_dp > 1 and sizes.dense_tp is None:
        notes.append(
            Note(
                "dense_tp_is_the_stage",
                f"dense FFN layers are sliced over all {sizes.tp} ranks of a stage, wider than attention's "
                f"TP ({sizes.attn_tp}); the scenario slices them over attention's TP",
                "--moe-dense-tp-size 1 keeps dense layers whole",
            )
        )
    if sizes.attn_dp > 1 and not request.settings.on("enable_dp_lm_head"):
        notes.append(
            Note(
                "lm_head_is_the_stage",
                f"the LM head is sliced over all {sizes.tp} ranks of a stage, which gather the rows of every "
                f"attention replica first; the scenario slices it over attention's TP ({sizes.attn_tp})",
                "--enable-dp-lm-head makes it so",
            )
        )
    return notes + experts_unknown(request, sizes.ep)

"""The groups DeepSpeed makes: a topology of processes, and experts by one of two rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.axis_groups import AxisGroups, View, grid
from tracer.frameworks.common import (
    check_heads,
    ep_no_factor,
    experts_unknown,
    linear,
    node_notes,
    not_contiguous,
)
from tracer.frameworks.deepspeed.checks import check_sizes
from tracer.frameworks.deepspeed.sizes import Sizes, resolve
from tracer.frameworks.notes import Note
from tracer.frameworks.settings import Reading
from tracer.scenario.plan import WeightSharding

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.grid import RankGrid
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan


def read(request: Request) -> Reading:
    """DeepSpeed's ProcessTopology axes ``pipe, data, model`` (model fastest), and its expert groups.

    Raises:
        Refusal: where DeepSpeed raises.
    """
    settings = request.settings
    sizes = resolve(request)
    check_sizes(request, sizes)
    rule = "attention heads ({heads}) must be divisible by the tensor parallel size ({tp})"
    check_heads(request, sizes.tp_dest, sizes.tp, rule)
    dense = grid(model=sizes.tp, sp=sizes.sp, data=sizes.dp, pipe=sizes.pp)
    expert_grid = _expert_grid(request, sizes)
    lanes = () if sizes.folding else ("lane",)
    expert = View(expert_grid, {"etp": lanes, "ep": ("ep",), "edp": ("edp",)})
    experts = settings.maybe("num_experts") or request.experts
    placed = "Number of experts ({experts}) should be divisible by expert parallel size ({ep})"
    return Reading(
        View(dense, {"tp": ("model",), "cp": ("sp",), "dp": ("data",), "pp": ("pipe",)}),
        expert,
        _groups(request, sizes, dense, expert_grid),
        _plan(sizes) | _zero(settings.size("zero_stage"), sizes),
        linear(experts, sizes.ep, sizes.ep_dest, placed, (sizes.ep_dest, "num_experts")),
        tuple(_notes(request, sizes, dense, expert.walk("ep"))),
    )


_ZERO_STAGES = {
    WeightSharding.ZERO1: 1,
    WeightSharding.ZERO2: 2,
    WeightSharding.ZERO3: 3,
    WeightSharding.FSDP: 3,
}


def write(mesh: Mesh, plan: Plan) -> list[str]:
    """DeepSpeed's settings for a mesh: AutoEP lays EP over consecutive ranks, the older rule in a TP lane."""
    words = ["--num-mp", str(mesh.tp), "--num-pp", str(mesh.stages), "--num-dp", str(mesh.dp)]
    words += ["--sequence-parallel-size", str(mesh.cp)] if mesh.cp > 1 else []
    stage = _ZERO_STAGES.get(plan.weight_shard, 0) if mesh.dp * mesh.cp > 1 else 0
    words += ["--zero-stage", str(stage)] if stage else []
    if mesh.ep == 1:
        return words
    if mesh.etp == 1 and mesh.tp > 1:
        return [*words, "--autotp-size", str(mesh.tp), "--autoep-size", str(mesh.ep)]
    before = mesh.edp > 1 and mesh.expert.stride_of("edp") < mesh.expert.stride_of("ep")
    words += ["--use-data-before-expert-parallelism"] if before else []
    return [*words, "--ep-size", str(mesh.ep)]


def _expert_grid(request: Request, sizes: Sizes) -> RankGrid:
    """Folding: EP over consecutive ranks of the stage. Legacy: EP inside one TP lane of each DP group.

    ``use_data_before_expert_parallelism`` makes expert data parallelism the faster of the two.
    """
    if sizes.folding:
        return grid(ep=sizes.ep, edp=sizes.world // (sizes.pp * sizes.ep), pipe=sizes.pp)
    edp = sizes.dp * sizes.sp // sizes.ep
    if request.settings.on("use_data_before_expert_parallelism"):
        return grid(lane=sizes.tp, edp=edp, ep=sizes.ep, pipe=sizes.pp)
    return grid(lane=sizes.tp, ep=sizes.ep, edp=edp, pipe=sizes.pp)


def _groups(request: Request, sizes: Sizes, dense: RankGrid, expert: RankGrid) -> dict[str, AxisGroups]:
    """Groups under the names of the topology (pipe data model) and of groups.py."""
    found = {name: AxisGroups(dense, (name,)) for name in ("model", "data", "pipe")}
    found |= {"tp": found["model"], "dp": found["data"], "dense_dp": found["data"]}
    found |= {"ep": AxisGroups(expert, ("ep",)), "edp": AxisGroups(expert, ("edp",))}
    if sizes.sp > 1:
        found |= {"sp": AxisGroups(dense, ("sp",)), "sp-dp": AxisGroups(dense, ("sp", "data"))}
    hpz = request.settings.size("zero_hpz_partition_size")
    if hpz > 1:
        found["zero_hpz"] = AxisGroups(grid(hpz=hpz, rest=sizes.world // hpz), ("hpz",))
    return found


def _plan(sizes: Sizes) -> dict[str, object]:
    # DistributedAttention and UlyssesSPAttentionHF; the latter copies K/V heads where they are few.
    plan: dict[str, object] = {"sp": "off", "kv_exchange": "ulysses", "landing": "contiguous"}
    if sizes.ep == 1 and not sizes.folding:
        return plan | {"contract": "tp"}
    # One all-to-all of capacity buffers: every expert's rows straight to its rank.
    return plan | {"contract": "ep", "dispatch": "low_latency"}


def _zero(stage: int, sizes: Sizes) -> dict[str, object]:
    """ZeRO shards over all data (and sequence) parallel ranks; only stage 3 shards weights."""
    return {"weight_shard": f"zero{stage}"} if stage and sizes.dp * sizes.sp > 1 else {}


def _notes(request: Request, sizes: Sizes, dense: RankGrid, ep: AxisGroups) -> list[Note]:
    settings = request.settings
    notes = node_notes(request, AxisGroups(dense, ("model",)), settings.name(sizes.tp_dest), ep)
    notes += ep_no_factor("DeepSpeed", "tp*pp*dp", sizes.ep, sizes.world)
    notes += not_contiguous(
        ep,
        "each TP lane (or data-before-expert) carves EP out of its own DP group",
        "AutoEP (expert_parallel.autoep_size) lays EP over consecutive ranks instead",
    )
    if not sizes.folding and sizes.tp > 1 and sizes.ep > 1:
        notes.append(_lanes(settings.on("enable_expert_tensor_parallelism")))
    if not settings.has("num_experts"):
        notes += experts_unknown(request, sizes.ep)
    return notes


def _lanes(sliced: bool) -> Note:
    if sliced:
        return Note(
            "two_moe_rules",
            "the legacy MoE layer makes one EP group for each TP lane; AutoEP would lay EP across",
            "pick one: ep_size of the MoE layer, or expert_parallel.autoep_size",
        )
    return Note(
        "lanes_hold_whole_experts",
        "without enable_expert_tensor_parallelism each TP lane holds whole experts; the scenario's etp names "
        "the lanes, and its trip counts slices",
        "--enable-expert-tensor-parallelism slices experts over the lanes",
    )

"""The meshes torchtitan makes: several row-major views of one world mesh, last dimension fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.axis_groups import AxisGroups, View, grid
from tracer.frameworks.common import (
    check_heads,
    ep_no_factor,
    experts_unknown,
    linear,
    node_notes,
    sharded_weights,
    shared_expert,
)
from tracer.frameworks.notes import Note, Refusal
from tracer.frameworks.settings import Reading
from tracer.frameworks.torchtitan.checks import (
    CP,
    EP,
    ETP,
    PP,
    REPLICATE,
    SHARD,
    TP,
    check_degrees,
    check_experts,
    check_world,
)
from tracer.frameworks.torchtitan.stages import stage_plan, written_stages
from tracer.scenario.plan import KvExchange, PromptCut, Sp, WeightSharding

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.grid import RankGrid
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan, WeightSharding


def read(request: Request) -> Reading:
    """Meshes ``(pp, dp_replicate, dp_shard, cp, tp)`` and ``(pp, dp_replicate, efsdp, ep)``.

    Raises:
        Refusal: where ParallelDims raises.
    """
    check_degrees(request)
    settings = request.settings
    replicate, shard, cp, tp, pp, ep = (settings.size(dest) for dest in (REPLICATE, SHARD, CP, TP, PP, EP))
    world = _world(request, replicate * max(shard, 1) * cp * tp * pp, shard)
    if shard == -1:
        shard = world // (replicate * cp * tp * pp)
    check_world(request, world, replicate=replicate, shard=shard, cp=cp, tp=tp, pp=pp)
    etp = settings.maybe(ETP)
    region = shard * cp * tp
    check_experts(ep, region, etp, request.version)
    etp = etp or 1
    if region % (etp * ep) or etp not in (1, tp):
        raise Refusal(ETP, f"expert_tensor_parallel_degree ({etp}) must be 1 or tp ({tp}), and ep * etp fit")
    check_heads(request, TP, tp, "n_heads ({heads}) must be divisible by tensor_parallel_degree ({tp})")
    stages, staged = stage_plan(request, pp)
    dense = grid(tp=tp, cp=cp, dp_shard=shard, dp_replicate=replicate, pp=pp)
    sparse = grid(etp=etp, ep=ep, efsdp=region // (ep * etp), dp_replicate=replicate, pp=pp)
    expert = View(sparse, {"etp": ("etp",), "ep": ("ep",), "edp": ("efsdp", "dp_replicate")})
    if ep == 1 and tp > 1 and request.experts is not None:
        # Without EP the experts' inner width is cut over TP (moe_sharding.py: expert_param_placement_dense).
        etp = tp
        expert = View(dense, {"etp": ("tp",), "ep": (), "edp": ("cp", "dp_shard", "dp_replicate")})
    plan = _plan(request, tp=tp, etp=etp, ep=ep)
    return Reading(
        View(dense, {"tp": ("tp",), "cp": ("cp",), "dp": ("dp_shard", "dp_replicate"), "pp": ("pp",)}),
        expert,
        _groups(dense, sparse),
        plan
        | shared_expert(request, tp, _shared_tp(plan))
        | _sharding(request, replicate=replicate, shard=shard * cp, pp=pp)
        | stages,
        linear(request.experts, ep, EP, "num_experts ({experts}) must be divisible by ep ({ep})"),
        (*_notes(request, dense, expert.walk("ep"), ep), *_shared_notes(request, plan), *staged),
    )


def write(mesh: Mesh, plan: Plan) -> list[str]:
    """Torchtitan's keys for a mesh: data parallelism is the shard dimension, but for what has copies."""
    replicate, shard = _written_dp(mesh, plan)
    sizes = {TP: mesh.tp, CP: mesh.cp, PP: mesh.stages, REPLICATE: replicate, SHARD: shard, EP: mesh.ep}
    words = [word for key, size in sizes.items() for word in (f"--parallelism.{key}", str(size))]
    if plan.sp is not Sp.MEGATRON:
        words.append("--parallelism.no-enable_sequence_parallel")
    words += written_stages(plan) if mesh.stages > 1 else []
    if plan.gathers_weights:
        keep = "never" if plan.weight_keep else "always"
        words += ["--parallelism.fsdp_reshard_after_forward", keep]
    if mesh.cp > 1:
        way = "allgather" if plan.kv_exchange is KvExchange.ALL_GATHER else "alltoall"
        balancer = "headtail" if plan.landing is PromptCut.ZIGZAG else "none"
        words += ["--parallelism.context_parallel_rotate_method", way]
        words += ["--parallelism.context_parallel_load_balancer", balancer]
    return words


def _written_dp(mesh: Mesh, plan: Plan) -> tuple[int, int]:
    """(copies, shards) of data parallelism: FSDP shards over cp too, and EP lies over the shards."""
    if plan.weight_shard is WeightSharding.HSDP and plan.weight_shard_size:
        shard = plan.weight_shard_size // mesh.cp
        if shard and plan.weight_shard_size % mesh.cp == 0 and mesh.dp % shard == 0:
            return mesh.dp // shard, shard
    whole = plan.weight_shard is WeightSharding.NONE and mesh.cp == 1 and mesh.ep == 1
    return (mesh.dp, 1) if whole else (1, mesh.dp)


def _world(request: Request, product: int, shard: int) -> int:
    """WORLD_SIZE; where nothing says it and dp_shard is given, what the degrees multiply to."""
    if request.gpus is None and shard > 0:
        return product
    return request.need_gpus("torchtitan")


def _groups(dense: RankGrid, sparse: RankGrid) -> dict[str, AxisGroups]:
    """Every mesh dimension under its name."""
    batch = ("dp_shard", "dp_replicate")
    sets = {
        "batch": batch,
        "dp": batch,
        "loss": ("cp", *batch),
        "fsdp": ("cp", "dp_shard"),
        "dp_shard": ("dp_shard",),
        "dp_replicate": ("dp_replicate",),
        "cp": ("cp",),
        "tp": ("tp",),
        "pp": ("pp",),
    }
    found = {name: AxisGroups(dense, axes) for name, axes in sets.items()}
    found |= {"ep": AxisGroups(sparse, ("ep",)), "efsdp": AxisGroups(sparse, ("efsdp",))}
    if sparse.size_of("etp") > 1:
        found["etp"] = AxisGroups(sparse, ("etp",))
    return found


def _plan(request: Request, *, tp: int, etp: int, ep: int) -> dict[str, object]:
    settings = request.settings
    sp = settings.on("enable_sequence_parallel") and tp > 1
    gathers = settings.text("context_parallel_rotate_method") == "allgather"
    plan: dict[str, object] = {
        "sp": "megatron" if sp else "off",
        "kv_exchange": "all_gather" if gathers else "ring",
        "embedding": "vocab_parallel",
        "landing": "zigzag"
        if settings.text("context_parallel_load_balancer") == "headtail"
        else "contiguous",
    }
    if ep == 1 and etp == tp:
        return plan | {"contract": "tp"}
    # All-to-all of rows permuted by expert: one copy of a row for each of its experts, no relay.
    return plan | {"contract": "ep", "dispatch": "low_latency"}


def _shared_tp(plan: dict[str, object]) -> str:
    """Beside sliced experts a shared one takes the rows that they gathered; with EP it gathers its own.

    models/common/moe_sharding.py: _shared_experts_sharding_configs.
    """
    return "merged" if plan.get("contract") == "tp" else "own"


def _shared_notes(request: Request, plan: dict[str, object]) -> list[Note]:
    """With SP a merged shared expert still scatters its sums by itself, which no trip counts."""
    shared = request.model is not None and request.model.shared_experts
    if not shared or plan["sp"] == "off" or _shared_tp(plan) != "merged":
        return []
    return [
        Note(
            "shared_scatter_not_counted",
            "torchtitan reduce-scatters the shared expert's sums apart from the routed ones: a trip shows "
            "one reduce-scatter for both",
            "add the bytes of one more reduce-scatter over tp a MoE layer",
        )
    ]


def _sharding(request: Request, *, replicate: int, shard: int, pp: int) -> dict[str, object]:
    """FSDP2 over dp_shard and cp, HSDP with copies; ``fsdp_reshard_after_forward`` says what is kept.

    ``default`` keeps gathered weights under pipeline parallelism, so that micro-batches do not gather again
    (distributed/fsdp.py: get_fsdp_reshard_after_forward_policy).
    """
    if shard == 1:
        return {}
    policy = request.settings.text("fsdp_reshard_after_forward")
    keep = policy == "never" or (policy == "default" and pp > 1)
    return sharded_weights(shard, replicate, keep=keep)


def _notes(request: Request, dense: RankGrid, ep_walk: AxisGroups, ep: int) -> list[Note]:
    settings = request.settings
    notes = node_notes(request, AxisGroups(dense, ("tp",)), settings.name(TP), ep_walk)
    notes += ep_no_factor("torchtitan", "dp_replicate*dp_shard*cp*tp*pp", ep, dense.size)
    if settings.size(SHARD) == -1:
        notes.append(
            Note(
                "dp_shard_is_the_rest",
                f"dp_shard is -1 (the default), so it takes the ranks left over: {dense.size_of('dp_shard')}",
                f"write {settings.name(SHARD)} {dense.size_of('dp_shard')} to fix it",
            )
        )
    if ep > 1 and dense.size_of("dp_replicate") > 1:
        notes.append(
            Note(
                "ep_inside_replica",
                "EP never crosses dp_replicate: each replica holds every expert",
                f"lower {settings.name(REPLICATE)} to spread experts wider",
            )
        )
    return notes + experts_unknown(request, ep)

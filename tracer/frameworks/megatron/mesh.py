"""The groups Megatron makes: two RankGenerators over the same ranks, and the plan of the MoE layers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracer.frameworks.axis_groups import AxisGroups, View
from tracer.frameworks.common import (
    check_heads,
    ep_no_factor,
    experts_unknown,
    linear,
    node_notes,
    not_contiguous,
    sharded_weights,
    shared_expert,
)
from tracer.frameworks.megatron.checks import (
    CP,
    EP,
    ETP,
    PP,
    TP,
    check_context,
    check_heads_over_cp,
    check_hybrid,
    check_one_generator,
    check_optimizer,
    check_order,
    check_pipelines,
    check_sizes,
)
from tracer.frameworks.megatron.stages import stage_plan, written_stages
from tracer.frameworks.notes import Note
from tracer.frameworks.settings import Reading
from tracer.mesh.grid import RankGrid
from tracer.model.layers import has_state
from tracer.scenario.plan import Contract, DispatchMode, KvExchange, Sp, WeightSharding

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request, Settings
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan

_DEFAULT_ORDER = "tp-cp-ep-dp-pp"
_DENSE_SETS = ("dp-cp", "tp-pp", "tp-cp", "tp-dp", "tp-dp-cp")
_EXPERT_SETS = ("etp-ep", "etp-ep-pp")
_EXPERTS_RULE = "Number of experts ({experts}) should be a multiple of expert model parallel_size ({ep})."


def read(request: Request) -> Reading:
    """Megatron's two grids: ``world = TP*CP*PP*DP = ETP*EP*PP*EDP``.

    Raises:
        Refusal: where Megatron raises.
    """
    settings, world = request.settings, request.need_gpus("Megatron-LM")
    tp, pp, cp, ep = (settings.size(dest) for dest in (TP, PP, CP, EP))
    etp = settings.maybe(ETP) or tp
    check_sizes(request, world, tp=tp, pp=pp, cp=cp, etp=etp, ep=ep)
    dp, edp = world // (tp * pp * cp), world // (etp * ep * pp)
    order = rank_order(settings)
    dense = rank_generator(request, order, tp=tp, cp=cp, dp=dp, pp=pp)
    twin = rank_generator(request, order, tp=etp, ep=ep, dp=edp, pp=pp)
    words = {"tp": "etp", "dp": "edp"}
    expert = RankGrid(tuple(words.get(name, name) for name in twin.names), twin.sizes)
    check_pipelines(request, order, dense, expert)
    experts = settings.maybe("num_experts") or request.experts
    check_context(request, cp)
    check_heads_over_cp(request, cp, tp)
    check_optimizer(request, dp * cp, edp)
    check_hybrid(request, dp * cp)
    rule = "number of attention heads ({heads}) must be a multiple of tensor_model_parallel_size ({tp})"
    check_heads(request, TP, tp, rule, settings.maybe("num_attention_heads"))
    stages, staged = stage_plan(request, pp)
    reading = Reading(
        View(dense, {axis: (axis,) for axis in ("tp", "cp", "dp", "pp")}),
        View(expert, {axis: (axis,) for axis in ("etp", "ep", "edp", "pp")}),
        _groups(settings, dense, expert),
        _plan(settings, tp=tp, cp=cp, etp=etp, ep=ep)
        | _states(request, cp)
        | _shared(request, tp)
        | _sharding(settings, dp * cp)
        | stages,
        linear(experts, ep, EP, _EXPERTS_RULE, mend=(EP, "num_experts")),
        tuple(staged),
    )
    return _noted(request, reading)


def write(mesh: Mesh, plan: Plan) -> list[str]:
    """Megatron's flags for a mesh: the default order, or ``--use-tp-pp-dp-mapping`` where pp is inside dp."""
    inside = mesh.stages > 1 and mesh.dense.stride_of("pp") < mesh.dense.stride_of("dp")
    words = ["--tensor-model-parallel-size", str(mesh.tp), "--pipeline-model-parallel-size", str(mesh.stages)]
    words += ["--context-parallel-size", str(mesh.cp)] if mesh.cp > 1 else []
    words += ["--expert-model-parallel-size", str(mesh.ep)] if mesh.ep > 1 else []
    words += ["--expert-tensor-parallel-size", str(mesh.etp)] if mesh.etp != mesh.tp else []
    words += ["--sequence-parallel"] if plan.sp is Sp.MEGATRON and mesh.tp > 1 else []
    words += ["--use-tp-pp-dp-mapping"] if inside else []
    words += written_stages(plan) if mesh.stages > 1 else []
    if mesh.cp > 1:
        words += ["--cp-comm-type", _CP_WORDS[plan.kv_exchange]]
    if mesh.cp > 1 and plan.cp_inner is not None:
        levels = (plan.cp_inner, mesh.cp // plan.cp_inner)
        words += ["--hierarchical-context-parallel-sizes", *map(str, levels)]
    words += _written_shards(plan, mesh.dp * mesh.cp)
    words += ["--moe-shared-expert-overlap"] if plan.shared_overlap else []
    if plan.contract is Contract.AG_RS:
        words += ["--moe-token-dispatcher-type", "allgather"]
    elif plan.contract is Contract.EP:
        flex = plan.dispatch is DispatchMode.HIGH_THROUGHPUT
        words += ["--moe-token-dispatcher-type", "flex" if flex else "alltoall"]
    return words


def rank_order(settings: Settings) -> str:
    """The order string that initialize.py passes, or the keyword given."""
    if settings.has("order"):
        return settings.text("order")
    return "tp-cp-ep-pp-dp" if settings.on("use_tp_pp_dp_mapping") else _DEFAULT_ORDER


def rank_generator(
    request: Request, order: str, *, pp: int, tp: int = 1, cp: int = 1, ep: int = 1, dp: int = 1
) -> RankGrid:
    """Megatron's RankGenerator: ranks over the axes of ``order``; axes left out go last with size 1.

    Raises:
        Refusal: for EP and CP together, and for an axis larger than 1 that the order leaves out.
    """
    check_one_generator(ep, cp)
    sizes = {"tp": tp, "pp": pp, "dp": dp, "ep": ep, "cp": cp}
    check_order(request, order, sizes)
    names = tuple(order.split("-"))
    names += tuple(name for name in sizes if name not in names)
    return RankGrid(names, tuple(sizes[name] for name in names))


def _groups(settings: Settings, dense: RankGrid, expert: RankGrid) -> dict[str, AxisGroups]:
    """Every group of initialize_model_parallel, members ascending."""
    found = {name: _walk(dense, name) for name in ("tp", "cp", "dp", "pp", *_DENSE_SETS)}
    found |= {name: _walk(expert, name) for name in ("ep", "etp", "edp", *_EXPERT_SETS)}
    found["embd"] = AxisGroups(dense, ("pp",), ends=(0, -1))
    found["pos_embd"] = AxisGroups(dense, ("pp",), ends=(0,))
    levels = settings.whole_list("hierarchical_context_parallel_sizes")
    if levels:
        split = _split(dense, "cp", {f"l{i}": size for i, size in enumerate(levels, 1)})
        found |= {f"hierarchical_cp_l{i}": AxisGroups(split, (f"l{i}",)) for i in range(1, len(levels) + 1)}
    if settings.on("hybrid_context_parallel"):
        found |= _hybrid_groups(dense)
    instances = settings.size("num_distributed_optimizer_instances")
    if instances > 1 and _before(dense, "cp", "dp"):
        found |= _optimizer_groups(dense, instances)
    if instances > 1:
        split = _split(expert, "edp", {"edp": expert.size_of("edp") // instances, "instances": instances})
        found["intra_edp"], found["inter_edp"] = (
            AxisGroups(split, ("edp",)),
            AxisGroups(split, ("instances",)),
        )
    return found


def _hybrid_groups(dense: RankGrid) -> dict[str, AxisGroups]:
    """Runs of a DP x CP group, one set of groups for each power of two from 2 and below its size.

    Source: ``create_hybrid_dp_cp_groups`` of Megatron's ``parallel_state.py``.
    """
    found: dict[str, AxisGroups] = {}
    for power in range(1, (dense.size_of("cp") * dense.size_of("dp")).bit_length() - 1):
        runs = _runs(dense, 1 << power)
        if runs is not None:
            found[f"hybrid_dp_cp_{1 << power}"] = runs[0]
    return found


def _optimizer_groups(dense: RankGrid, instances: int) -> dict[str, AxisGroups]:
    """The DP x CP group in ``instances`` equal runs of its ascending ranks."""
    runs = _runs(dense, dense.size_of("cp") * dense.size_of("dp") // instances)
    return {} if runs is None else {"intra_dp_cp": runs[0], "inter_dp_cp": runs[1]}


def _runs(dense: RankGrid, run: int) -> tuple[AxisGroups, AxisGroups] | None:
    """Runs of ``run`` ascending ranks of each DP x CP group, and across them the ranks of one place in a run.

    A run is whole groups of the faster axis, or a part of one; None for one that ends inside the next.
    """
    fast, slow = ("cp", "dp") if _before(dense, "cp", "dp") else ("dp", "cp")
    inner, outer = dense.size_of(fast), dense.size_of(slow)
    if run % inner == 0 and outer % (run // inner) == 0:
        split = _split(dense, slow, {slow: run // inner, "rest": inner * outer // run})
        return _walk(split, "dp-cp"), AxisGroups(split, ("rest",))
    if inner % run == 0:
        split = _split(dense, fast, {fast: run, "rest": inner // run})
        return AxisGroups(split, (fast,)), _walk(split, f"rest-{slow}")
    return None


def _walk(grid: RankGrid, names: str) -> AxisGroups:
    """A group over a set of axes, its members ascending."""
    return AxisGroups(grid, tuple(sorted(names.split("-"), key=grid.index)))


def _before(grid: RankGrid, first: str, second: str) -> bool:
    return grid.index(first) < grid.index(second)


def _split(grid: RankGrid, axis: str, parts: dict[str, int]) -> RankGrid:
    """A grid with one axis cut into several, fastest first."""
    names: list[str] = []
    sizes: list[int] = []
    for name, size in zip(grid.names, grid.sizes, strict=True):
        names += parts if name == axis else [name]
        sizes += parts.values() if name == axis else [size]
    return RankGrid(tuple(names), tuple(sizes))


_STRATEGIES = {"optim": "zero1", "optim_grads": "zero2", "optim_grads_params": "fsdp"}


def _shared(request: Request, tp: int) -> dict[str, object]:
    """SharedExpertMLP gathers and sums over TP as any MLP; overlapped, around the dispatch."""
    own = shared_expert(request, tp, "own")
    overlaps = own and request.settings.on("moe_shared_expert_overlap")
    return own | ({"shared_overlap": True} if overlaps else {})


def _sharding(settings: Settings, ranks: int) -> dict[str, object]:
    """What data parallelism shards: Megatron-FSDP by its strategy, FSDP2 weights, else the optimizer.

    Instances of the distributed optimizer are copies of the shard group.
    """
    if ranks == 1:
        return {}
    kind = "zero1" if settings.on("use_distributed_optimizer") else "none"
    if settings.on("use_torch_fsdp2"):
        kind = "fsdp"
    if settings.on("use_megatron_fsdp"):
        kind = _STRATEGIES.get(settings.text("data_parallel_sharding_strategy"), "none")
    copies = settings.size("num_distributed_optimizer_instances")
    if kind == "fsdp":
        return sharded_weights(ranks // copies, copies)
    return {} if kind == "none" else {"weight_shard": kind}


_CP_KINDS = {"p2p": "ring", "all_gather": "all_gather", "a2a": "ulysses", "a2a+p2p": "hierarchical"}


_CP_WORDS = {KvExchange(kind): word for word, kind in _CP_KINDS.items()}


def _written_shards(plan: Plan, ranks: int) -> list[str]:
    """Flags that shard what data parallelism has copies of."""
    if ranks == 1 or plan.weight_shard is WeightSharding.NONE:
        return []
    if plan.weight_shard is WeightSharding.ZERO1:
        return ["--use-distributed-optimizer"]
    kind = "optim_grads" if plan.weight_shard is WeightSharding.ZERO2 else "optim_grads_params"
    copies = ranks // (plan.weight_shard_size or ranks)
    words = ["--use-megatron-fsdp", "--data-parallel-sharding-strategy", kind]
    return words + (["--num-distributed-optimizer-instances", str(copies)] if copies > 1 else [])


def _kv_exchange(settings: Settings, cp: int) -> dict[str, object]:
    """The kind of context parallelism; the first of the hierarchical sizes is the all-to-all's group."""
    kind = _CP_KINDS.get(settings.text("cp_comm_type"), "ring")
    if kind != "hierarchical" or cp == 1:
        return {"kv_exchange": "ring" if kind == "hierarchical" else kind}
    levels = settings.whole_list("hierarchical_context_parallel_sizes")
    return {"kv_exchange": kind, "cp_inner": levels[0]}


def _states(request: Request, cp: int) -> dict[str, object]:
    """Mamba and gated delta net send heads over CP, whatever the kind of attention (all-to-all)."""
    model = request.model
    keeps = model is not None and any(has_state(kind.attention) for kind in model.layer_kinds)
    return {"state_exchange": "heads"} if cp > 1 and keeps else {}


def _plan(settings: Settings, *, tp: int, cp: int, etp: int, ep: int) -> dict[str, object]:
    """How the layers run: SP, the token dispatcher, the exchange of K/V."""
    plan: dict[str, object] = {
        "sp": "megatron" if settings.on("sequence_parallel") and tp > 1 else "off",
        **_kv_exchange(settings, cp),
        "embedding": "vocab_parallel",
        "strict": "megatron",
    }
    dispatcher = settings.text("moe_token_dispatcher_type")
    if ep == 1 and etp == tp:
        return plan | {"contract": "tp"}
    if dispatcher == "allgather":
        return plan | {"contract": "ag_rs"}
    # alltoall sends one copy of a row for each of its experts; flex removes doubles and relays.
    return plan | {"contract": "ep", "dispatch": "high_throughput" if dispatcher == "flex" else "low_latency"}


def _noted(request: Request, reading: Reading) -> Reading:
    """The reading with warnings about what commonly goes wrong."""
    settings = request.settings
    tp, ep = reading.dense.size("tp"), reading.expert.size("ep")
    ep_walk = reading.expert.walk("ep")
    notes = node_notes(request, reading.dense.walk("tp"), settings.name(TP), ep_walk)
    notes += ep_no_factor("Megatron-LM", "TP*CP*PP*DP", ep, reading.world_size)
    notes += not_contiguous(
        ep_walk, "expert TP or pp lies inside EP", "--expert-tensor-parallel-size 1 makes EP the fastest axis"
    )
    if ep > 1 and tp > 1 and not settings.has(ETP):
        notes.append(_ETP_NOTE)
    if ep > 1 and tp > 1 and not settings.on("sequence_parallel"):
        notes.append(_SP_NOTE)
    if tp == 1 and settings.on("sequence_parallel"):
        notes.append(
            Note("sp_disabled", "without TP the launcher turns --sequence-parallel off", "drop the flag")
        )
    if settings.has("order"):
        notes.append(_ORDER_NOTE)
    if settings.on("hybrid_context_parallel"):
        notes.append(_HYBRID_NOTE)
    if not settings.has("num_experts"):
        notes += experts_unknown(request, ep)
    groups = settings.maybe("moe_router_num_groups")
    if groups and ep % groups and groups % ep:
        notes.append(
            Note(
                "router_groups_cut",
                f"{groups} router groups do not fit ep = {ep}: a group's experts sit on parts of EP ranks",
                "make --moe-router-num-groups the number of nodes of the EP group",
            )
        )
    return replace(reading, notes=(*reading.notes, *notes))


_ETP_NOTE = Note(
    "etp_defaults_to_tp",
    "--expert-tensor-parallel-size is not given, so it is the TP size: every expert is sliced over TP, and "
    "EP ranks lie TP apart",
    "add --expert-tensor-parallel-size 1 for whole experts",
)
_SP_NOTE = Note(
    "sp_needed_for_training",
    "EP with TP but without sequence parallelism starts, and raises a ValueError in the first training "
    "forward of a MoE layer",
    "add --sequence-parallel",
)
_HYBRID_NOTE = Note(
    "not_modelled",
    "--hybrid-context-parallel spreads each sequence over as many DP x CP ranks as its length asks for; a "
    "trip here is spread over the CP ranks alone",
    "the groups hold; say --context-parallel-size to see a longer sequence's way",
)
_ORDER_NOTE = Note(
    "order_is_a_keyword",
    "order is a keyword of initialize_model_parallel(), not a flag of the launcher",
    "the launcher's own choices are the default and --use-tp-pp-dp-mapping",
)

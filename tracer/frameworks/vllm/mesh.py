"""The groups vLLM makes: one table ``ExternalDP x DP x PP x PCP x TP``, slowest axis first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracer.frameworks.axis_groups import AxisGroups, View, grid
from tracer.frameworks.common import (
    ep_all_reduce,
    experts_unknown,
    node_notes,
    not_contiguous,
    shared_expert,
)
from tracer.frameworks.fp8_blocks import check_fp8_blocks
from tracer.frameworks.notes import Note, Refusal
from tracer.frameworks.settings import Reading
from tracer.frameworks.vllm.checks import (
    DCP,
    DP,
    EP,
    EPLB,
    LOCAL,
    PCP,
    PP,
    TP,
    check_attention,
    check_flags,
    check_world,
)
from tracer.frameworks.vllm.experts import place_experts
from tracer.frameworks.vllm.flags import (
    BACKEND_ALIASES,
    BACKENDS,
    LOW_LATENCY_BACKENDS,
    REMOVED_BACKENDS,
    SPLIT_BACKENDS,
)
from tracer.model.weights import WeightPart
from tracer.scenario.plan import Contract, DispatchMode

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request
    from tracer.mesh.grid import RankGrid
    from tracer.mesh.mesh import Mesh
    from tracer.scenario.plan import Plan


@dataclass(frozen=True, slots=True)
class _Sizes:
    tp: int
    pcp: int
    pp: int
    dp: int
    dcp: int
    interleave: int
    external: int
    ep_on: bool

    @property
    def tp_dcp(self) -> int:
        """DCP ranks within a TP group; where there is PCP, its ranks are the rest of a DCP group."""
        return self.dcp if self.pcp == 1 else max(1, self.dcp // self.pcp)


def read(request: Request) -> Reading:
    """One table of ranks: ``rank = dp_rank·(pp·pcp·tp) + pp_rank·(pcp·tp) + pcp_rank·tp + tp_rank``.

    Raises:
        Refusal: where vLLM raises.
    """
    check_flags(request)
    check_attention(request)
    sizes, notes = _sizes(request)
    ranks = grid(tp=sizes.tp, pcp=sizes.pcp, pp=sizes.pp, dp=sizes.dp, external_dp=sizes.external)
    flat = ("tp", "pcp", "dp")
    experts = {"etp": () if sizes.ep_on else flat, "ep": flat if sizes.ep_on else (), "edp": ("external_dp",)}
    backend, said = _backend(request)
    check_fp8_blocks(request, TP, _fp8_slices(sizes, backend), merged_may_differ=True)
    expert = View(ranks, experts)
    placement, placed = place_experts(request, expert.size("ep"), backend, _uses_all2all(sizes, backend))
    notes += said + placed + _layout_notes(request, sizes, expert.walk("ep"), ranks)
    plan, planned = _plan(sizes, backend)
    return Reading(
        View(ranks, {"tp": ("tp",), "cp": ("pcp",), "dp": ("dp", "external_dp"), "pp": ("pp",)}),
        expert,
        _groups(ranks, sizes, request),
        plan | shared_expert(request, sizes.tp, _shared_tp(sizes, backend)) | _stages(request, sizes.pp),
        placement,
        tuple(notes + planned),
    )


def _fp8_slices(sizes: _Sizes, backend: str) -> dict[WeightPart, int]:
    """How many ranks cut each part: TP, and without EP every rank of a stage the experts."""
    parts = {WeightPart.ATTENTION: sizes.tp, WeightPart.DENSE: sizes.tp}
    if not sizes.ep_on:
        parts[WeightPart.EXPERTS] = sizes.tp * sizes.pcp * sizes.dp
    if _shared_tp(sizes, backend) != "whole":
        parts[WeightPart.SHARED] = sizes.tp
    return parts


def write(mesh: Mesh, plan: Plan) -> list[str]:
    """VLLM's flags for a mesh: EP is every rank of a stage, or off."""
    words = ["-tp", str(mesh.tp)]
    words += ["-pcp", str(mesh.cp)] if mesh.cp > 1 else []
    words += ["-pp", str(mesh.stages)] if mesh.stages > 1 else []
    words += ["-dp", str(mesh.dp)] if mesh.dp > 1 else []
    if plan.dcp > 1:
        words += ["-dcp", str(plan.dcp * mesh.cp)]
        words += ["--dcp-kv-cache-interleave-size", str(plan.dcp_interleave)] * (plan.dcp_interleave > 1)
    words += ["--enable-expert-parallel"] if mesh.ep > 1 else []
    if mesh.ep > 1 and plan.contract is Contract.EP:
        slow = plan.dispatch is DispatchMode.LOW_LATENCY
        words += ["--all2all-backend", "deepep_low_latency" if slow else "deepep_high_throughput"]
    return words


def _sizes(request: Request) -> tuple[_Sizes, list[Note]]:
    """Sizes, with the GPUs left over as ExternalDP where they make whole copies."""
    settings = request.settings
    tp, pcp, pp, dp = (settings.size(dest) for dest in (TP, PCP, PP, DP))
    engine, world, gpus = tp * pcp * pp, tp * pcp * pp * dp, request.gpus
    notes = check_world(request, world, engine)
    external = 1
    if gpus is not None and gpus > world:
        launcher = settings.text("distributed_executor_backend") == "external_launcher"
        if gpus % world == 0:
            external = gpus // world
            notes += [] if launcher else [_external(world, gpus, external)]
        elif launcher:
            raise Refusal(
                TP, f"the torch world of {gpus} does not divide into engines of {world}", mend=(TP, "gpus")
            )
        else:
            notes.append(_idle(world, gpus))
    dcp, interleave = settings.size(DCP), settings.size("dcp_kv_cache_interleave_size")
    if pcp > 1 and dcp == 1:
        notes.append(_pcp_copies(pcp))
    if dcp > 1 and settings.text("dcp_comm_backend") == "a2a":
        notes.append(_DCP_ALL_TO_ALL)
    return _Sizes(tp, pcp, pp, dp, dcp, interleave, external, settings.on(EP)), notes


_DCP_ALL_TO_ALL = Note(
    "not_modelled",
    "--dcp-comm-backend a2a joins the partial results of decode attention by an all-to-all; the trip counts "
    "what ag_rs moves",
    "the groups hold; drop the flag for what is counted",
)


def _pcp_copies(pcp: int) -> Note:
    return Note(
        "pcp_copies_kv",
        f"PCP {pcp} without DCP keeps a whole copy of the K/V on each PCP rank; the scenario shares it over "
        f"them, so its room for K/V is up to {pcp} times what this launch has",
        f"add -dcp {pcp}, which shares the K/V over the PCP ranks",
    )


def _external(world: int, gpus: int, copies: int) -> Note:
    return Note(
        "external_dp",
        f"the flags start engines of {world} GPUs; {gpus} GPUs hold {copies} of them, shown as ExternalDP "
        "(external_launcher, or separate servers); one `vllm serve` alone leaves the rest idle",
        f"say --gpus {world} for one server, or -dp to make one engine of all",
    )


def _idle(world: int, gpus: int) -> Note:
    return Note(
        "idle_gpus",
        f"vLLM starts {world} ranks; {gpus - world} of the {gpus} GPUs stay idle",
        f"raise -tp, -pp or -dp, or say --gpus {world}",
    )


def _groups(ranks: RankGrid, sizes: _Sizes, request: Request) -> dict[str, AxisGroups]:
    """The groups under vLLM's names; the EP group exists for every model with experts."""
    found = {name: AxisGroups(ranks, (name,)) for name in ("tp", "pcp", "pp", "dp")}
    if sizes.pcp == 1:
        lanes = grid(dcp=sizes.dcp, rest=ranks.size // sizes.dcp)
        found["dcp"] = AxisGroups(lanes, ("dcp",))
    else:  # the table is transposed, so that DCP walks PCP before TP
        axes = {1: (), sizes.pcp: ("pcp",)}.get(sizes.dcp, ("pcp", "tp"))
        found["dcp"] = AxisGroups(ranks, axes)
    if request.model is None or request.model.experts is not None:
        found["ep"] = AxisGroups(ranks, ("tp", "pcp", "dp"))
        if request.settings.on(EPLB):  # the same ranks, in a process group apart from the forward pass
            found["eplb"] = found["ep"]
    return found


def _backend(request: Request) -> tuple[str, list[Note]]:
    """The all2all backend that runs, and what was replaced on the way."""
    flag = request.settings.text("all2all_backend")
    given = flag or request.env.get("VLLM_ALL2ALL_BACKEND", "")
    name = BACKEND_ALIASES.get(given, given) or "allgather_reducescatter"
    notes = []
    if not flag and given:
        notes.append(
            Note(
                "env_replaced",
                "VLLM_ALL2ALL_BACKEND is from older versions; it is read here as --all2all-backend",
                f"write --all2all-backend {name}",
            )
        )
    if name in REMOVED_BACKENDS:
        notes.append(
            Note(
                "backend_removed",
                f"the all2all backend {name!r} was removed; vLLM falls back to allgather_reducescatter",
                "pick one of " + ", ".join(BACKENDS[1:4]),
            )
        )
        return "allgather_reducescatter", notes
    if name not in BACKENDS:
        raise Refusal(
            "all2all_backend",
            f"{name!r} is not one of {', '.join(BACKENDS)}",
            otherwise="try --all2all-backend allgather_reducescatter",
        )
    return name, notes


def _splits_tokens(sizes: _Sizes, backend: str) -> bool:
    """Sequence-parallel MoE: tokens are split over TP before dispatch (use_sequence_parallel_moe)."""
    return sizes.ep_on and sizes.tp > 1 and sizes.dp > 1 and backend in SPLIT_BACKENDS


def _uses_all2all(sizes: _Sizes, backend: str) -> bool:
    return sizes.dp > 1 or _splits_tokens(sizes, backend) or (sizes.ep_on and sizes.pcp > 1)


def _plan(sizes: _Sizes, backend: str) -> tuple[dict[str, object], list[Note]]:
    """How rows move between attention and experts."""
    plan: dict[str, object] = {
        "sp": "before_dispatch" if _splits_tokens(sizes, backend) else "off",
        "kv_exchange": "all_gather",
        "embedding": "vocab_parallel",
    }
    if sizes.tp_dcp > 1:
        plan |= {"dcp": sizes.tp_dcp, "dcp_interleave": sizes.interleave}
    if sizes.dp == 1 and sizes.pcp == 1 and not sizes.ep_on:
        return plan | {"contract": "tp"}, []
    if not _uses_all2all(sizes, backend):
        notes = [ep_all_reduce("vLLM", "with one replica (DP 1)")] if sizes.tp > 1 else []
        return plan | {"contract": "ag_rs"}, notes
    if not sizes.ep_on or backend == "allgather_reducescatter":
        return plan | {"contract": "ag_rs"}, []
    speed = "low_latency" if backend in LOW_LATENCY_BACKENDS else "high_throughput"
    return plan | {"contract": "ep", "dispatch": speed}, []


def _shared_tp(sizes: _Sizes, backend: str) -> str:
    """What TP does with a shared expert.

    Sequence-parallel MoE turns its TP off (``disable_tp``). Else it is sliced, and one all-reduce sums it
    with the routed experts, unless the backend's combine has summed those already
    (``fused_moe/runner/moe_runner.py``: ``output_is_reduced``).
    """
    if _splits_tokens(sizes, backend):
        return "whole"
    reduced = sizes.ep_on and _uses_all2all(sizes, backend) and backend != "allgather_reducescatter"
    return "own" if reduced else "merged"


def _stages(request: Request, pp: int) -> dict[str, object]:
    """Layers of each stage: VLLM_PP_LAYER_PARTITION, or a remainder that avoids the last stage.

    Source: ``vllm/distributed/utils.py`` (get_pp_indices).
    """
    layers = request.model.layers if request.model is not None else None
    given = request.env.get("VLLM_PP_LAYER_PARTITION", "")
    if pp == 1:
        return {}
    if given:
        words = given.split(",")
        stages = [int(word) for word in words if word.strip().isdecimal() and len(word) < 8]
        if len(stages) != len(words) or len(stages) != pp or sum(stages) != (layers or sum(stages)):
            raise Refusal(
                PP,
                f"partitions {given!r} (VLLM_PP_LAYER_PARTITION) do not match pp_size={pp} and "
                f"num_hidden_layers={layers or 'of the model'}",
                otherwise="mend VLLM_PP_LAYER_PARTITION, or drop it",
            )
        return {"stage_layers": stages}
    if layers is None or pp > layers:
        return {}
    stages = [layers // pp] * pp
    for place in range(2, layers % pp + 2):
        stages[-place] += 1
    return {"stage_layers": stages}


def _layout_notes(request: Request, sizes: _Sizes, ep: AxisGroups, ranks: RankGrid) -> list[Note]:
    settings = request.settings
    notes = node_notes(request, AxisGroups(ranks, ("tp",)), settings.name(TP), ep)
    notes += not_contiguous(
        ep,
        "PP lies inside DP, so a stage's ranks are spread over the replicas",
        "with PP > 1, place replicas so that a stage's ranks share a node, or use -pp 1",
    )
    notes += _local_note(request, sizes)
    if sizes.ep_on:
        notes.append(
            Note(
                "ep_all_or_nothing",
                f"--enable-expert-parallel makes EP = TP x PCP x DP = {ep.size}; vLLM has no other EP size",
                "change -tp or -dp to change EP",
            )
        )
    elif sizes.tp * sizes.pcp * sizes.dp > 1 and request.experts is not None:
        notes.append(
            Note(
                "experts_tensor_sharded",
                f"without --enable-expert-parallel every expert is sliced over "
                f"{sizes.tp * sizes.pcp * sizes.dp} ranks (TP x PCP x DP)",
                "add --enable-expert-parallel for whole experts",
            )
        )
    return notes + experts_unknown(request, ep.size)


def _local_note(request: Request, sizes: _Sizes) -> list[Note]:
    """A remark where the replicas of a node take another number of GPUs than its nodes have here."""
    local = request.settings.maybe(LOCAL)
    taken = (local or 0) * sizes.tp * sizes.pcp * sizes.pp
    if not taken or sizes.dp == local or taken == request.gpus_per_node:
        return []
    return [
        Note(
            "node_size_differs",
            f"{request.settings.name(LOCAL)} {local} puts {local} replicas on a node, which take {taken} "
            f"GPUs; the nodes here have {request.gpus_per_node}, so more replicas share one",
            f"say --gpus-per-node {taken} if a node has no others",
        )
    ]

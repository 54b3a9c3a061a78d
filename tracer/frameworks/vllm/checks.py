"""What vLLM refuses, in its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.frameworks.notes import Note, Refusal

if TYPE_CHECKING:
    from tracer.frameworks.settings import Request

TP, PP, DP = "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"
PCP, DCP, LOCAL = "prefill_context_parallel_size", "decode_context_parallel_size", "data_parallel_size_local"
EPLB, EP = "enable_eplb", "enable_expert_parallel"
RANK, NODES, EXECUTOR = "data_parallel_rank", "nnodes", "distributed_executor_backend"
EXECUTORS = ("ray", "mp", "uni", "external_launcher")
HYBRID, EXTERNAL = "data_parallel_hybrid_lb", "data_parallel_external_lb"


def check_flags(request: Request) -> None:
    """ParallelConfig's own validators."""
    settings = request.settings
    local, dp = settings.maybe(LOCAL), settings.size(DP)
    if settings.has("expert_parallel_size"):
        raise Refusal(
            "expert_parallel_size",
            "unrecognized arguments: --expert-parallel-size (the EP size is derived: every rank of a "
            "pipeline stage, or 1)",
            otherwise="try --enable-expert-parallel",
        )
    if local is not None and local > dp:
        raise Refusal(
            LOCAL,
            f"data_parallel_size_local ({local}) must be <= data_parallel_size ({dp})",
            mend=(LOCAL, DP),
        )
    rank = settings.maybe(RANK)
    if rank is not None and rank >= dp:
        raise Refusal(RANK, f"data_parallel_rank ({rank}) must be in the range [0, {dp})", mend=(DP,))
    _check_nodes(request)
    _check_load_balancing(request)
    _check_executor(request)
    _check_dcp(request)
    _check_eplb(request)
    _check_experts(request)


def _check_dcp(request: Request) -> None:
    settings = request.settings
    tp, pcp, dcp = settings.size(TP), settings.size(PCP), settings.size(DCP)
    if pcp == 1 and tp % dcp:
        raise Refusal(DCP, f"tp_size={tp} must be divisible by dcp_size={dcp}.", mend=(DCP, TP))
    if pcp > 1 and dcp not in (1, pcp, tp * pcp):
        raise Refusal(
            DCP,
            "When PCP is enabled, DCP must be disabled, span the PCP axis, or span the full TP x PCP axis. "
            f"Got TP={tp}, PCP={pcp}, DCP={dcp}; valid DCP sizes are {sorted({1, pcp, tp * pcp})}.",
        )


def _check_eplb(request: Request) -> None:
    settings = request.settings
    tp, pcp, dp = settings.size(TP), settings.size(PCP), settings.size(DP)
    redundant = redundant_experts(request)
    if settings.on(EPLB) and not settings.on(EP):
        raise Refusal(EPLB, "enable_expert_parallel must be True to use EPLB.", mend=(EP, EPLB))
    if settings.on(EPLB) and tp * pcp * dp <= 1:
        raise Refusal(
            EPLB,
            "EPLB requires tensor, prefill-context, or data parallelism, "
            f"but got TP={tp}, PCP={pcp}, DP={dp}.",
            mend=(TP, DP, EPLB),
        )
    if redundant and not settings.on(EPLB):
        raise Refusal(
            "eplb_config",
            f"num_redundant_experts is set to {redundant} but EPLB is not enabled. Either enable EPLB or "
            "unset num_redundant_experts.",
            mend=(EPLB,),
            otherwise="add --enable-eplb --enable-expert-parallel, or unset num_redundant_experts",
        )
    if settings.on("enable_elastic_ep"):
        _check_elastic(request)


def _check_elastic(request: Request) -> None:
    settings, pp = request.settings, request.settings.size(PP)
    if pp > 1:
        raise Refusal(
            "enable_elastic_ep",
            f"Elastic EP is not supported with pipeline parallelism (pipeline_parallel_size={pp}).",
            mend=("enable_elastic_ep", PP),
        )
    if not settings.on(EPLB):
        raise Refusal("enable_elastic_ep", "Elastic EP is only supported with enable_eplb=True.")
    if settings.on("data_parallel_hybrid_lb"):
        raise Refusal("data_parallel_hybrid_lb", "Elastic EP is not compatible with data_parallel_hybrid_lb.")


def redundant_experts(request: Request) -> int:
    """Redundant experts of ``--eplb-config``, or of the older flag of that name."""
    settings = request.settings
    inner = settings.inner("eplb_config", "num_redundant_experts")
    return inner if inner is not None else settings.maybe("num_redundant_experts") or 0


def _check_nodes(request: Request) -> None:
    """What several nodes need: whole shares of the ranks, and whole groups of local replicas."""
    settings = request.settings
    nodes, node, backend = (
        settings.size(NODES),
        settings.size("node_rank"),
        settings.text("data_parallel_backend"),
    )
    if nodes == 1:
        return
    if backend != "mp":
        raise Refusal(
            NODES,
            f"`--nnodes {nodes}` requires `--data-parallel-backend mp`; got `--data-parallel-backend "
            f"{backend}`. Use the MP backend or set `--nnodes 1`.",
            otherwise="drop --data-parallel-backend ray, or --nnodes",
        )
    world = settings.size(TP) * settings.size(PP) * settings.size(PCP) * settings.size(DP)
    if world % nodes:
        raise Refusal(
            NODES,
            f"`--nnodes {nodes}` must evenly divide the total world size ({world}). Adjust `--nnodes`, "
            "`--data-parallel-size`, `--pipeline-parallel-size`, `--tensor-parallel-size`, or "
            "`--prefill-context-parallel-size`.",
            mend=(NODES, DP, TP),
        )
    if node >= nodes:
        raise Refusal(
            "node_rank",
            f"`--node-rank` must be between 0 and {nodes - 1}; got `--node-rank {node}`. Set it to this "
            "node's zero-based index.",
            otherwise=f"try --node-rank {nodes - 1}",
        )
    groups = settings.size(DP) // _local_replicas(request, world // nodes)
    if nodes % groups and not _external(request):
        raise Refusal(
            LOCAL if settings.has(LOCAL) else NODES,
            f"nnodes ({nodes}) must be divisible by the number of data parallel node groups ({groups} = "
            f"data_parallel_size {settings.size(DP)} / data_parallel_size_local "
            f"{_local_replicas(request, world // nodes)})",
            mend=(LOCAL, NODES) if settings.has(LOCAL) else (NODES, DP),
        )


def _local_replicas(request: Request, ranks_per_node: int) -> int:
    """Replicas of a node: as given, or as many as fit its share of the ranks."""
    settings = request.settings
    given = settings.maybe(LOCAL)
    engine = settings.size(TP) * settings.size(PP) * settings.size(PCP)
    return max(given if given is not None else ranks_per_node // engine, 1)


def _external(request: Request) -> bool:
    """Whether a load balancer outside picks the replica: asked for, or a rank of a replica is given."""
    return request.settings.on(EXTERNAL) or request.settings.has(RANK)


def _check_load_balancing(request: Request) -> None:
    """Who picks the replica of a request: one mode at a time, with what it needs.

    Source: ``vllm/engine/arg_utils.py`` (create_engine_config).
    """
    settings, model = request.settings, request.model
    dp, nodes, local = settings.size(DP), settings.size(NODES), settings.maybe(LOCAL)
    if settings.on(HYBRID) and settings.on(EXTERNAL):
        raise Refusal(
            HYBRID,
            "`--data-parallel-hybrid-lb` and `--data-parallel-external-lb` cannot be enabled together. "
            "Enable only one load-balancing mode.",
            mend=(HYBRID, EXTERNAL),
        )
    if settings.on(HYBRID) and local is None and nodes == 1:
        raise Refusal(
            HYBRID,
            "`--data-parallel-hybrid-lb` requires `--data-parallel-size-local`. Set it to the number of "
            "data-parallel ranks on this node.",
            mend=(LOCAL, HYBRID),
        )
    if not _external(request):
        return
    if settings.on(EXTERNAL) and dp == 1:
        raise Refusal(EXTERNAL, "data_parallel_external_lb can only be set when data_parallel_size > 1")
    if not settings.has(RANK) and (nodes == 1 or nodes % dp):
        raise Refusal(
            EXTERNAL,
            "`--data-parallel-external-lb` requires a data-parallel rank. Set `--data-parallel-rank`, or use "
            "`--nnodes` (a multiple of `--data-parallel-size`) with `--node-rank` so the rank can be "
            "inferred.",
            mend=(RANK, EXTERNAL),
        )
    if local not in (None, 1):
        raise Refusal(
            LOCAL,
            "an external data-parallel rank requires `--data-parallel-size-local 1`; got "
            f"{local}. Set it to 1 or omit it.",
        )
    if dp > 1 and model is not None and model.experts is None:
        raise Refusal(
            RANK if settings.has(RANK) else EXTERNAL,
            "Non-MoE models do not support external data parallel mode. For external load balancing, launch "
            "independent vLLM instances without --data-parallel-* arguments.",
            otherwise="drop the --data-parallel-* arguments",
        )


def _check_executor(request: Request) -> None:
    """The executor must be one that vLLM has, and one that reaches all stages and nodes."""
    settings = request.settings
    name = settings.text(EXECUTOR)
    if settings.size(NODES) > 1 and name not in ("", "mp", "uni", "external_launcher"):
        raise Refusal(
            NODES,
            "nnodes > 1 can only be set when distributed executor backend is mp, uni or external_launcher.",
        )
    if name and name not in EXECUTORS and "." not in name:
        raise Refusal(
            EXECUTOR,
            f"Unrecognized distributed executor backend {name}. Supported values are 'ray', 'mp' 'uni', "
            "'external_launcher',  custom Executor subclass or its import path.",
            otherwise=f"try {settings.name(EXECUTOR)} mp",
        )
    if name == "uni" and settings.size(PP) > 1:
        raise Refusal(
            EXECUTOR,
            "Pipeline Parallelism without Ray distributed executor or multiprocessing executor or external "
            "launcher is not supported.",
            otherwise=f"try {settings.name(EXECUTOR)} mp",
        )


def _check_experts(request: Request) -> None:
    """Expert parallelism wants experts."""
    if request.settings.on(EP) and request.model is not None and request.model.experts is None:
        raise Refusal(
            EP,
            "Number of experts in the model must be greater than 0 when expert parallelism is enabled.",
        )


def check_world(request: Request, world: int, engine: int) -> list[Note]:
    """All ranks must fit the GPUs; an engine (without DP) larger than a node needs --nnodes or ray."""
    settings, gpus, per_node = request.settings, request.gpus, request.gpus_per_node
    if gpus is not None and engine > gpus:
        raise Refusal(
            TP,
            f"World size ({engine}) is larger than the number of available GPUs ({gpus}) in this node. If "
            "this is intentional and you are using ray, set '--distributed-executor-backend ray'; "
            "multiprocessing, set '--nnodes' appropriately.",
            mend=(*(dest for dest in (TP, PP, PCP) if settings.has(dest)), "gpus"),
        )
    if gpus is not None and world > gpus:
        raise Refusal(
            DP,
            f"World size ({world}, data parallel replicas included) is larger than the number of available "
            f"GPUs ({gpus})",
            mend=(DP, "gpus"),
        )
    ray = "ray" in (settings.text("distributed_executor_backend"), settings.text("data_parallel_backend"))
    if engine <= per_node or settings.size("nnodes") > 1 or ray:
        return []
    return [
        Note(
            "nnodes_missing",
            f"one engine takes {engine} GPUs and a node has {per_node}: vLLM refuses it without --nnodes "
            "or ray",
            f"add --nnodes {-(-engine // per_node)}, or --distributed-executor-backend ray",
        )
    ]


def check_attention(request: Request) -> None:
    """TP over heads; DCP of models with grouped or single KV heads."""
    settings, model = request.settings, request.model
    if model is None or model.heads is None:
        return
    tp, dcp, heads = settings.size(TP), settings.size(DCP), model.heads
    kv_heads = model.kv_heads or heads
    if heads % tp:
        raise Refusal(
            TP,
            f"Total number of attention heads ({heads}) must be divisible by tensor parallel size ({tp}).",
        )
    if dcp == 1 or model.mla:
        return
    if tp <= kv_heads:
        rule = (
            f"Decode context parallelism for GQA/MQA requires `--tensor-parallel-size` ({tp}) to be greater "
            f"than the model's total number of KV heads ({kv_heads})."
        )
    elif dcp > tp // kv_heads:
        rule = (
            f"`--decode-context-parallel-size` ({dcp}) exceeds the maximum supported value "
            f"({tp // kv_heads}) for `--tensor-parallel-size` ({tp}) and {kv_heads} model KV heads."
        )
    elif heads // kv_heads % dcp:
        rule = (
            f"The model's number of query heads per KV head ({heads // kv_heads}) must be divisible by "
            f"`--decode-context-parallel-size` ({dcp}) for GQA/MQA."
        )
    else:
        return
    raise Refusal(DCP, rule, mend=(DCP, TP))

"""What is served on what: a cluster, a mesh and a plan, and the model that is placed on them.

A deployment says nothing of tokens; :mod:`tracer.scenario.scenario` adds the one question. Where groups
and coordinates alone are asked, no model is needed: that is a :class:`BareDeployment`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, divisors, listed
from tracer.mesh.axes import Axis
from tracer.model.dtype import Dtypes
from tracer.model.layers import (
    CompressedAttention,
    HeadAttention,
    LatentAttention,
    LinearAttention,
    Mamba2,
)
from tracer.scenario.chunks import LayerChunk, layer_chunks, runs_by_stage
from tracer.scenario.placement import Placement
from tracer.scenario.plan import Contract, DecodeAttention, Plan, SharedTp, StateExchange
from tracer.scenario.sharding import check_sharding

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster
    from tracer.mesh.mesh import Mesh
    from tracer.model.layers import Attention
    from tracer.model.spec import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class BareDeployment:
    """Ranks on machines and how they are run; no model yet.

    ``name`` and ``source`` say what it is called and who describes it.

    Raises:
        ConfigError: for two parts that do not fit each other.
    """

    cluster: Cluster
    mesh: Mesh
    plan: Plan = field(default_factory=Plan)
    dtype: Dtypes = field(default_factory=Dtypes)
    name: str | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if self.cluster.world_size != self.mesh.world_size:
            raise ConfigError(
                "cluster.world_size",
                self.cluster.world_size,
                f"must be the mesh's {self.mesh.world_size} ranks",
                f"try {self.mesh.world_size}",
            )
        _check_plan(self.plan, self.mesh)
        _check_cp_inner(self.plan, self.mesh)
        check_sharding(self.plan, self.mesh)
        _check_dcp(self.plan, self.mesh, None)

    def serving(
        self,
        model: ModelSpec,
        placement: Placement | None = None,
        layer_placements: tuple[tuple[int, Placement], ...] = (),
    ) -> Deployment:
        """The deployment of a model on these ranks.

        Raises:
            ConfigError: for a model that does not fit them.
        """
        parts = {each.name: getattr(self, each.name) for each in fields(BareDeployment)}
        return Deployment(**parts, model=model, placement=placement, layer_placements=layer_placements)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment(BareDeployment):
    """A model on ranks on machines; what is derived from them is computed once, at construction.

    ``placement`` says which EP rank holds which expert (None: linear), ``layer_placements`` overrides it
    in single layers, numbered from 1. ``chunks`` are the runs of layers in the order a token meets them,
    each with its stage; ``stage_runs`` are those of each stage, ascending, ``stage_layers`` how many layers
    it has in all.

    Raises:
        ConfigError: for any two parts that do not fit each other.
    """

    model: ModelSpec
    placement: Placement | None = None
    layer_placements: tuple[tuple[int, Placement], ...] = ()
    chunks: tuple[LayerChunk, ...] = field(init=False, repr=False, compare=False)
    stage_runs: tuple[tuple[range, ...], ...] = field(init=False, repr=False, compare=False)
    stage_layers: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A class that slots=True made anew is not the one that super() would look for.
        BareDeployment.__post_init__(self)
        _check_dcp(self.plan, self.mesh, self.model)
        _check_heads(self.model, self.mesh)
        _check_head_parts(self.plan, self.mesh, self.model)
        if self.model.shared_experts and self.model.moe_layers:
            _check_merged(self.plan, self.mesh)
        experts = (
            placed_experts(self.model, self.plan) if self.model.experts or self.plan.shared_routed else 0
        )
        if self.placement is None and experts:
            object.__setattr__(self, "placement", Placement.linear(experts, self.mesh.ep))
        _check_placements(self, experts)
        chunks = layer_chunks(self.model.layers, self.mesh.stages, self.plan)
        runs = runs_by_stage(chunks, self.mesh.stages)
        object.__setattr__(self, "chunks", chunks)
        object.__setattr__(self, "stage_runs", runs)
        object.__setattr__(self, "stage_layers", tuple(sum(map(len, each)) for each in runs))

    @property
    def dense_tp(self) -> int:
        """TP size of dense feed-forward layers."""
        return self.plan.dense_tp or self.mesh.tp

    @property
    def always_picked(self) -> range:
        """Experts that every token picks: the shared ones, where they are routed too."""
        routed = self.model.experts or 0
        return range(routed, routed + (self.model.shared_experts if self.plan.shared_routed else 0))

    def placement_of(self, layer: int) -> Placement:
        """Expert placement of a MoE layer.

        Raises:
            ConfigError: when the model has no experts.
        """
        for number, placement in self.layer_placements:
            if number == layer:
                return placement
        if self.placement is None:
            raise ConfigError(
                "model.experts", None, "is needed to place experts", "give model.experts and model.top_k"
            )
        return self.placement

    @property
    def head_stage(self) -> int:
        """The stage with the LM head: that of the last chunk."""
        return self.chunks[-1].stage

    def layers_of(self, stage: int) -> tuple[int, ...]:
        """Layers of a stage, counted from 1, ascending."""
        return tuple(layer for run in self.stage_runs[stage] for layer in run)

    def stage_of_layer(self, layer: int) -> int:
        """The stage that a layer, counted from 1, is in.

        Raises:
            ConfigError: when there is no such layer.
        """
        if not 1 <= layer <= self.model.layers:
            raise ConfigError(
                "layer", layer, f"must be from 1 to {self.model.layers}", f"try {self.model.layers}"
            )
        place = bisect_left(self.chunks, layer, key=lambda chunk: chunk.layers.stop - 1)
        return self.chunks[place].stage


def placed_experts(model: ModelSpec, plan: Plan) -> int:
    """Experts that take slots: the routed ones, and the shared ones when they are routed too.

    Expert numbers from ``model.experts`` on are the shared ones.

    Raises:
        ConfigError: when shared experts are to be routed and the model has none, or they differ in width.
    """
    experts = model.need("experts", "place experts")
    if not plan.shared_routed:
        return experts
    if not model.shared_experts:
        raise ConfigError(
            "mesh.shared_routed", True, "needs a shared expert, and the model has none", "drop it"
        )
    if model.shared_hidden != model.shared_experts * model.need("expert_hidden", "place experts"):
        raise ConfigError(
            "mesh.shared_routed",
            True,
            f"needs shared experts as wide as the routed ({model.expert_hidden}), not {model.shared_hidden}",
            "drop it",
        )
    return experts + model.shared_experts


def check_moe_layer(layer: int, model: ModelSpec) -> int:
    """A layer, when it has experts and so may have a slot table of its own.

    Raises:
        ConfigError: when it is dense, or not there.
    """
    if not (1 <= layer <= model.layers and model.is_moe(layer)):
        raise ConfigError(
            f"placement.slots_by_layer.{layer}",
            "a table",
            f"is for a layer without experts, or outside 1 to {model.layers}",
            "number MoE layers from 1",
        )
    return layer


def _check_plan(plan: Plan, mesh: Mesh) -> None:
    if plan.dense_tp not in (None, 1, mesh.tp):
        raise ConfigError(
            "mesh.dense_tp", plan.dense_tp, f"must be 1 or the mesh's tp = {mesh.tp}", f"try {mesh.tp}"
        )
    if plan.contract is Contract.TP and (mesh.etp != mesh.tp or mesh.ep != 1):
        raise ConfigError(
            "mesh.contract",
            "tp",
            f"slices experts over tp: it needs ep = 1 and etp = tp = {mesh.tp}",
            f"drop ep = {mesh.ep} and etp = {mesh.etp}, or take contract = 'ep'",
        )


def _check_cp_inner(plan: Plan, mesh: Mesh) -> None:
    """The inner groups of hierarchical CP are equal parts of a CP group; heads over CP rule DCP out."""
    parts = plan.head_parts(mesh.cp)
    if mesh.cp % parts:
        raise ConfigError(
            "mesh.cp_inner",
            parts,
            f"must divide cp = {mesh.cp}, whose ranks it groups",
            f"try {listed(divisors(mesh.cp))}",
        )
    if parts > 1 and plan.dcp > 1:
        raise ConfigError(
            "mesh.dcp",
            plan.dcp,
            f"shards tokens that kv_exchange = {str(plan.kv_exchange)!r} keeps by heads",
            "try dcp = 1, or kv_exchange = 'ring'",
        )
    if parts > 1 and plan.decode_attention is DecodeAttention.PASS_KV:
        raise ConfigError(
            "mesh.decode_attention",
            "pass_kv",
            f"moves K/V, but with kv_exchange = {str(plan.kv_exchange)!r} heads move",
            "drop it, or take kv_exchange = 'ring'",
        )


def _check_head_parts(plan: Plan, mesh: Mesh, model: ModelSpec) -> None:
    """CP ranks that share heads must get equal shares of a TP rank's; few K/V heads are copied evenly."""
    parts = plan.head_parts(mesh.cp)
    if model.layer_kinds:
        for kind, _ in model.kinds():
            _check_parts_of(kind.attention, plan, mesh)
    elif parts > 1 and model.heads is not None:
        heads = model.heads // mesh.tp
        kv_heads = heads if model.mla or model.kv_heads is None else max(1, model.kv_heads // mesh.tp)
        _check_shares(plan, parts, heads, kv_heads)


def _check_parts_of(attention: Attention | None, plan: Plan, mesh: Mesh) -> None:
    """The same for one kind of layer, its state's heads too where they move."""
    parts = plan.head_parts(mesh.cp)
    if isinstance(attention, LinearAttention | Mamba2):
        heads = attention.heads // mesh.tp
        if mesh.cp > 1 and plan.state_exchange is StateExchange.HEADS and heads % mesh.cp:
            rule = f"cuts the {heads} heads of a TP rank's {attention.type} layers over cp = {mesh.cp}"
            fix = f"try cp = {listed(divisors(heads))}, or state_exchange = 'state'"
            raise ConfigError("mesh.state_exchange", "heads", rule, fix)
        return
    if parts == 1 or attention is None:
        return
    if isinstance(attention, CompressedAttention) or attention.index_heads:
        raise ConfigError(
            "mesh.kv_exchange",
            str(plan.kv_exchange),
            "cuts heads, and compressed attention and indexers work for all heads at once",
            "try kv_exchange = 'ring'",
        )
    heads = attention.heads // mesh.tp
    own = heads if isinstance(attention, LatentAttention) else max(1, attention.kv_heads // mesh.tp)
    _check_shares(plan, parts, heads, own)


def _check_shares(plan: Plan, parts: int, heads: int, kv_heads: int) -> None:
    """``parts`` CP ranks share the query heads and the K/V heads of a TP rank evenly."""
    if heads % parts:
        raise ConfigError(
            "mesh.kv_exchange",
            str(plan.kv_exchange),
            f"cuts the {heads} query heads of a TP rank over {parts} CP ranks, which must divide them",
            f"try {'cp' if plan.cp_inner is None else 'cp_inner'} = {listed(divisors(heads))}",
        )
    if (parts % kv_heads if kv_heads < parts else kv_heads % parts) != 0:
        raise ConfigError(
            "mesh.kv_exchange",
            str(plan.kv_exchange),
            f"cuts {kv_heads} KV heads of a TP rank over {parts} CP ranks: one number must divide the other",
            "try another cp, or kv_exchange = 'ring'",
        )


def _check_dcp(plan: Plan, mesh: Mesh, model: ModelSpec | None) -> None:
    """DCP takes over ranks of a TP group that would otherwise hold copies of one KV head.

    vLLM: dcp divides tp, and lies in 1 to tp / H for H KV heads (MLA: H = 1). Where no model says H, the
    rest of the rule holds.
    """
    dcp, tp = plan.dcp, mesh.tp
    if dcp == 1:
        return
    if tp % dcp:
        fix = f"try {listed(divisors(tp))} (vLLM: --decode-context-parallel-size)"
        raise ConfigError("mesh.dcp", dcp, f"must divide tp = {tp}, whose ranks it is carved from", fix)
    if plan.decode_attention is DecodeAttention.PASS_KV:
        raise ConfigError(
            "mesh.decode_attention",
            "pass_kv",
            f"moves K/V, but with dcp = {dcp} the queries are gathered",
            "try 'pass_q', or dcp = 1",
        )
    kv_heads = None if model is None else _fewest_copied(model)
    copies = dcp if kv_heads is None else max(1, tp // kv_heads)
    if copies % dcp:
        raise ConfigError(
            "mesh.dcp",
            dcp,
            f"cannot shard this cache: with tp {tp} each of the {kv_heads} KV heads stands on "
            f"{copies} rank{'s' * (copies > 1)}, and dcp must divide that",
            f"try dcp = {listed(divisors(copies))}, or tp = {(kv_heads or 1) * dcp} for dcp = {dcp}",
        )


def _fewest_copied(model: ModelSpec) -> int | None:
    """KV heads of the layers that have the most of them: their copies are the fewest (a latent is one)."""
    if not model.layer_kinds:
        return 1 if model.mla else model.kv_heads
    counts = [
        kind.attention.kv_heads if isinstance(kind.attention, HeadAttention) else 1
        for kind, _ in model.kinds()
        if kind.kv_values
    ]
    return max(counts, default=None)


def _check_merged(plan: Plan, mesh: Mesh) -> None:
    """Partial sums of a shared expert need a reduction that all ranks of a TP group take part in."""
    if plan.shared_tp is not SharedTp.MERGED or merges_over_tp(plan.contract, mesh):
        return
    raise ConfigError(
        "mesh.shared_tp",
        "merged",
        "adds a shared expert's partial sums to a reduction over the TP group, and contract "
        f"{str(plan.contract)!r} has none here",
        "try shared_tp = 'own', or 'whole'",
    )


def merges_over_tp(contract: Contract, mesh: Mesh) -> bool:
    """Whether a MoE block has a reduction over each TP group that partial sums can join.

    Contract tp reduces over TP itself; ag_rs returns partial rows from the whole dispatch group, which
    holds the TP group when edp is outside tp, or tp outside edp. Dispatch to picked experts, and pulled
    weights, reduce nothing over TP.
    """
    if contract is Contract.TP or mesh.tp == 1:
        return True
    if contract is not Contract.AG_RS or mesh.edp == 1:
        return contract is Contract.AG_RS
    outside, inside = mesh.expert.stride_of(Axis.EDP), mesh.position(mesh.dense.stride_of(Axis.TP))
    return outside % (inside * mesh.tp) == 0 or inside % (outside * mesh.edp) == 0


def _check_heads(model: ModelSpec, mesh: Mesh) -> None:
    """TP must divide the query heads; KV heads split over it or are replicated evenly."""
    _check_cut(mesh.tp, model.heads, None if model.mla else model.kv_heads)
    for kind in dict.fromkeys(model.layer_kinds):
        attention = kind.attention
        if attention is not None:
            few = attention.kv_heads if isinstance(attention, HeadAttention) else None
            few = attention.key_heads if isinstance(attention, LinearAttention) else few
            _check_cut(mesh.tp, attention.heads, few, f" in its {attention.type} layers")


def _check_cut(tp: int, heads: int | None, kv_heads: int | None, where: str = "") -> None:
    """The same for some heads; ``where`` says which layers have them."""
    if heads is not None and heads % tp:
        tries = listed(divisors(heads))
        rule = f"must divide the model's {heads} attention heads{where}"
        raise ConfigError("mesh.tp", tp, rule, f"try {tries}")
    if kv_heads is None:
        return
    if (tp % kv_heads if kv_heads < tp else kv_heads % tp) != 0:
        choices = [
            size for size in divisors(heads or kv_heads) if kv_heads % size == 0 or size % kv_heads == 0
        ]
        raise ConfigError(
            "mesh.tp",
            tp,
            f"must divide the model's {kv_heads} KV heads{where}, or be a multiple of them",
            f"try {listed(choices)}",
        )


def _check_placements(deployment: Deployment, experts: int) -> None:
    """Placements hold the model's experts on the mesh's EP ranks; those of single layers name MoE layers."""
    model, ep = deployment.model, deployment.mesh.ep
    for layer, _ in deployment.layer_placements:
        check_moe_layer(layer, model)
    given = [placement for _, placement in deployment.layer_placements]
    for placement in [*given, *([] if deployment.placement is None else [deployment.placement])]:
        if (placement.experts, placement.ep) != (experts, ep):
            raise ConfigError(
                "placement",
                f"{placement.experts} experts on {placement.ep} EP ranks",
                f"must hold the model's {experts} experts on the mesh's {ep} EP ranks",
                "give a placement of that size, or none for a linear one",
            )

"""How the mesh is run: where SP splits, how K/V, experts, embedding and layers travel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tracer.errors import ConfigError, divisors, listed, one_of, whole_number

if TYPE_CHECKING:
    from tracer.mesh.mesh import Mesh
    from tracer.model.spec import ModelSpec


def check_dcp(plan: Plan, mesh: Mesh, model: ModelSpec | None) -> None:
    """DCP takes over ranks of a TP group that would otherwise hold copies of one KV head.

    vLLM: dcp divides tp, and lies in 1 to tp / H for H KV heads (MLA: H = 1).

    Raises:
        ConfigError: when dcp does not divide tp, when a GQA cache has no copies to replace, or when
            queries would have to stay while K/V moves.
    """
    dcp, tp = plan.dcp, mesh.size_of("tp")
    if dcp == 1:
        return
    if tp % dcp:
        fix = f"try {listed(divisors(tp))} (vLLM: --decode-context-parallel-size)"
        raise ConfigError("mesh.dcp", dcp, f"must divide tp = {tp}, whose ranks it is carved from", fix)
    if plan.decode_attention == "pass_kv":
        raise ConfigError(
            "mesh.decode_attention",
            "pass_kv",
            f"moves K/V, but with dcp = {dcp} the queries are gathered",
            "try 'pass_q', or dcp = 1",
        )
    kv_heads = None if model is None else 1 if model.mla else model.kv_heads
    copies = dcp if kv_heads is None else max(1, tp // kv_heads)
    if copies % dcp:
        raise ConfigError(
            "mesh.dcp",
            dcp,
            f"cannot shard this cache: with tp {tp} each of the {kv_heads} KV heads stands on "
            f"{copies} rank{'s' * (copies > 1)}, and dcp must divide that",
            f"try dcp = {listed(divisors(copies))}, or tp = {(kv_heads or 1) * dcp} for dcp = {dcp}",
        )


class Sp(StrEnum):
    """Where tokens are split over the TP group."""

    MEGATRON = "megatron"
    OFF = "off"
    BEFORE_DISPATCH = "before_dispatch"


class Contract(StrEnum):
    """What a MoE layer moves: tokens, sums, all rows, or weights."""

    EP = "ep"
    TP = "tp"
    AG_RS = "ag_rs"
    DWDP = "dwdp"


CHOICES = {
    "sp": tuple(Sp),
    "kv_exchange": ("ring", "all_gather"),
    "dispatch": ("high_throughput", "low_latency"),
    "contract": tuple(Contract),
    "tp_algo": ("direct", "ring"),
    "embedding": ("replicated", "vocab_parallel"),
    "landing": ("zigzag", "contiguous"),
    "decode_attention": ("pass_q", "pass_kv", "auto"),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Named choices of one deployment; the words are those of the counting rules.

    ``dense_tp`` is None for the mesh's tp, or 1; ``stage_layers`` lists the layers of each stage when
    they are not split evenly. ``shared_routed`` serves the shared experts as routed ones that every token
    picks: they take slots of their own and travel by dispatch (DeepSeek-V3 report, section 3.4.2).
    ``dcp`` ranks of a TP group that hold the same KV head share its tokens, ``dcp_interleave`` consecutive
    ones at a time (vLLM's decode context parallelism).

    Raises:
        ConfigError: for a word that is not one of the choices.
    """

    sp: str = Sp.MEGATRON
    kv_exchange: str = "ring"
    dispatch: str = "high_throughput"
    contract: str = Contract.EP
    tp_algo: str = "direct"
    dense_tp: int | None = None
    shared_tp: bool = False
    shared_routed: bool = False
    embedding: str = "replicated"
    landing: str = "zigzag"
    stage_layers: tuple[int, ...] | None = None
    decode_attention: str = "pass_q"
    dcp: int = 1
    dcp_interleave: int = 1

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            one_of(f"mesh.{name}", getattr(self, name), tuple(str(word) for word in allowed))
        for name in ("shared_tp", "shared_routed"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"mesh.{name}", getattr(self, name), "must be true or false", "try false")
        if self.shared_routed and self.shared_tp:
            raise ConfigError(
                "mesh.shared_tp",
                True,
                "slices a shared expert that shared_routed sends away",
                "drop one of the two",
            )
        if self.dense_tp is not None:
            whole_number("mesh.dense_tp", self.dense_tp)
        whole_number("mesh.dcp", self.dcp)
        whole_number("mesh.dcp_interleave", self.dcp_interleave)
        for stage, layers in enumerate(self.stage_layers or ()):
            whole_number(f"mesh.stage_layers[{stage}]", layers)


def default_dispatch(phase: str) -> str:
    """How a phase dispatches when nobody says: decode pays for latency, prefill for bytes."""
    return "low_latency" if phase == "decode" else "high_throughput"


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


def split_layers(layers: int, stages: int, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """Layers of each stage: as given, else evenly, the first stages taking one more each.

    >>> split_layers(61, 4, None)
    (16, 15, 15, 15)

    Raises:
        ConfigError: when a stage would be empty, or given sizes do not add up.
    """
    if given is not None:
        if len(given) != stages or sum(given) != layers:
            raise ConfigError(
                "mesh.stage_layers",
                list(given),
                f"must list {stages} stages that add up to {layers} layers",
                "mend the list, or leave it out for an even split",
            )
        return given
    if stages > layers:
        raise ConfigError(
            "mesh.pp",
            stages,
            f"is more stages than the model's {layers} layers",
            f"try {layers} or fewer stages",
        )
    share, extra = divmod(layers, stages)
    return (share + 1,) * extra + (share,) * (stages - extra)

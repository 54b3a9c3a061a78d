"""The sources' decision chart (one node or many; throughput or first token), with a scenario's numbers.

The chart is "MoE inference internals", section 6: up to one NVLink node, pure TP; several nodes for
throughput, pure EP; for time to first token, TP4 with EP over the rest. Each branch is laid over the same
GPUs and counted by the closed forms, so that the advice shows what it costs here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.display import format_bytes, format_seconds
from tracer.errors import ConfigError, one_of
from tracer.model.parameters import count_parameters
from tracer.scenario.step import tokens_per_replica
from tracer.traffic.traffic import CommVolume, comm_volume

if TYPE_CHECKING:
    from tracer.scenario.scenario import Scenario

SCHEMA = 1
OBJECTIVES = ("throughput", "ttft")
HYBRID_TP = 4


@dataclass(frozen=True, slots=True)
class AdviceChoice:
    """One branch of the chart on the scenario's GPUs; ``refused`` says why it cannot be laid out.

    Bytes and seconds are of one forward pass in which every replica holds its share of the same tokens;
    ``prompt_flops`` are those that one GPU spends on one prompt, ``weight_bytes`` what it holds.
    """

    name: str
    mesh: dict[str, Any]
    refused: str | None = None
    nvlink_bytes: float = 0.0
    ib_bytes: float = 0.0
    seconds: float = 0.0
    tokens_per_expert: float = 0.0
    prompt_flops: float = 0.0
    weight_bytes: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Advice:
    """Questions with this scenario's answers, the chart's choice, and every choice's numbers."""

    scenario: Scenario
    objective: str
    steps: tuple[tuple[str, str], ...]
    recommended: str
    choices: tuple[AdviceChoice, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "schema": SCHEMA,
            "scenario": self.scenario.name,
            "objective": self.objective,
            "steps": [{"question": question, "answer": answer} for question, answer in self.steps],
            "recommended": self.recommended,
            "choices": [choice.to_dict() for choice in self.choices],
            "notes": list(self.notes),
        }


def advise(scenario: Scenario, objective: str = "throughput") -> Advice:
    """Walk the chart for a MoE scenario.

    Raises:
        ConfigError: for an unknown objective, or a model without experts.
    """
    one_of("objective", objective, OBJECTIVES)
    model, cluster = scenario.model, scenario.cluster
    if not model.moe_layers:
        raise ConfigError("model.experts", None, "is needed: the chart is of MoE models", "give it experts")
    world, nvlink_domain = scenario.mesh.world_size, cluster.gpus_per_nvlink_domain
    single = world <= nvlink_domain
    choices = tuple(_choice(scenario, name, mesh) for name, mesh in _meshes(world, nvlink_domain).items())
    hybrid = f"TP{HYBRID_TP} + EP"
    wanted = "pure TP" if single else ("pure EP" if objective == "throughput" else hybrid)
    count, plural = ("one", "") if single else (str(-(-world // nvlink_domain)), "s")
    word = f"{count} NVLink {cluster.domain_word}{plural}"
    steps = (
        ("How large is the cluster?", f"{world} GPUs on {word} of {nvlink_domain}"),
        ("Do the weights fit one?", _fit(scenario, nvlink_domain)),
        ("What is served for?", "irrelevant on one node: pure TP" if single else objective),
        ("How full are the experts?", _fullness(scenario)),
    )
    return Advice(scenario, objective, steps, wanted, choices, tuple(_notes(choices, wanted)))


def _meshes(world: int, nvlink_domain: int) -> dict[str, dict[str, Any]]:
    """The chart's branches over ``world`` GPUs; TP stays inside an NVLink domain, replicas fill the rest."""
    tp = min(world, nvlink_domain)
    hybrid = min(HYBRID_TP, world)
    return {
        "pure TP": {"tp": tp, "dp": world // tp, "contract": "tp"},
        "pure EP": {"dp": world, "ep": world},
        f"TP{HYBRID_TP} + EP": {
            "tp": hybrid,
            "dp": world // hybrid,
            "etp": hybrid,
            "ep": world // hybrid,
        },
    }


def _choice(scenario: Scenario, name: str, mesh: dict[str, Any]) -> AdviceChoice:
    """One branch counted, with the scenario's tokens shared by its replicas."""
    from tracer.scenario.scenario import Scenario as Whole

    tables = scenario.to_dict()
    replicas = scenario.mesh.dp
    prompt = scenario.token.prompt
    share = -(-prompt * replicas // mesh["dp"])
    sp = tables["mesh"]["sp"]
    tables |= {"placement": None, "picks": {}, "token": {"prompt": share}, "phase": "prefill"}
    tables["mesh"] = {"sp": sp, **mesh}
    try:
        moved = Whole.from_dict(tables)
        traffic = comm_volume(moved)
    except ConfigError as error:
        return AdviceChoice(name, mesh, refused=str(error))
    return _counted(name, mesh, moved, traffic, prompt)


def _counted(
    name: str, mesh: dict[str, Any], scenario: Scenario, traffic: CommVolume, prompt: int
) -> AdviceChoice:
    model = scenario.model
    count = count_parameters(model)
    tp, tokens = scenario.mesh.tp, traffic.tokens * scenario.mesh.dp
    experts = count.of("experts")
    # Replicas of the experts serve their own tokens: those of a dispatch group, or of a TP group.
    sets = scenario.mesh.edp
    held = experts.weight_bytes / scenario.mesh.dispatch_size
    rest = (count.weight_bytes - experts.weight_bytes) / tp
    return AdviceChoice(
        name,
        mesh,
        None,
        traffic.nvlink_bytes_per_pass,
        traffic.ib_bytes_per_pass,
        traffic.seconds_per_pass,
        tokens / sets * (model.top_k or 0) / (model.experts or 1),
        2 * count.active * prompt / tp,
        held + rest,
    )


def _fit(scenario: Scenario, nvlink_domain: int) -> str:
    """Weight bytes against the memory of one NVLink domain."""
    size = count_parameters(scenario.model).weight_bytes
    gpu = scenario.cluster.gpu
    if gpu is None:
        return f"weights are {format_bytes(size)}; no hardware is named, so its memory is unknown"
    memory = gpu.hbm_bytes
    if memory is None:
        return f"weights are {format_bytes(size)}; no source states this GPU's memory"
    gpus = f"{nvlink_domain} GPUs of {format_bytes(memory)}"
    if size >= memory * nvlink_domain:
        return f"weights of {format_bytes(size)} do not fit {gpus}"
    left = memory - size // nvlink_domain
    return f"weights of {format_bytes(size)} fit {gpus} and leave {format_bytes(left)} a GPU for all else"


def _fullness(scenario: Scenario) -> str:
    """Tokens an expert in the scenario's own batch."""
    model, mesh = scenario.model, scenario.mesh
    tokens = tokens_per_replica(scenario) * mesh.dp / mesh.edp
    each = tokens * (model.top_k or 0) / (model.experts or 1)
    return f"{tokens:,.0f} tokens share a set of experts: {each:,.4g} tokens per expert and layer"


def _notes(choices: tuple[AdviceChoice, ...], wanted: str) -> list[str]:
    """Where the numbers of this scenario part from the chart."""
    laid = [choice for choice in choices if choice.refused is None]
    chosen = next((choice for choice in laid if choice.name == wanted), None)
    if chosen is None:
        return [f"the chart's choice, {wanted}, cannot be laid out here"]
    least = min(laid, key=lambda choice: choice.seconds)
    if least is chosen:
        return [f"{wanted} also has the least communication time: {format_seconds(chosen.seconds)} a pass"]
    return [
        f"{least.name} has the least communication time here, {format_seconds(least.seconds)} a pass against "
        f"{format_seconds(chosen.seconds)} of {wanted}"
    ]

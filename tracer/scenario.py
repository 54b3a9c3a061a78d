"""One question in full: cluster, model, mesh, plan, placement, picks, token and phase."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tracer.dtype import Dtypes
from tracer.errors import ConfigError, divisors, listed, one_of, whole_number
from tracer.landing import Landing
from tracer.plan import Contract, Plan, placed_experts, split_layers
from tracer.routing import check_picks, draw_picks

if TYPE_CHECKING:
    from tracer.cluster import Cluster
    from tracer.expert_placement import Placement
    from tracer.mesh import Mesh
    from tracer.model_spec import ModelSpec

PHASES = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class Token:
    """Which token is followed: a position of a replica's prompt, or the first that lands on a GPU.

    ``prompt`` is the prompt's length; ``prompt_logprobs`` sends every position through the LM head;
    ``draft_head`` (EAGLE, MTP) reads every final row, so nothing of the last layer is dead work.
    """

    prompt: int
    replica: int | None = None
    position: int | None = None
    gpu: int | None = None
    prompt_logprobs: bool = False
    draft_head: bool = False

    def __post_init__(self) -> None:
        whole_number("token.prompt", self.prompt)
        for name in ("replica", "position", "gpu"):
            if getattr(self, name) is not None:
                whole_number(f"token.{name}", getattr(self, name), at_least=0)
        for name in ("prompt_logprobs", "draft_head"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"token.{name}", getattr(self, name), "must be true or false", "try false")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A checked scenario; what is derived from it is computed once, at construction.

    ``layer_placements`` overrides ``placement`` in single layers; ``picks`` are (layer, experts) pairs,
    layers numbered from 1. ``model`` may be None while only groups are asked.

    Raises:
        ConfigError: for any two parts that do not fit each other.
    """

    mesh: Mesh
    cluster: Cluster
    token: Token
    model: ModelSpec | None = None
    plan: Plan = field(default_factory=Plan)
    placement: Placement | None = None
    layer_placements: tuple[tuple[int, Placement], ...] = ()
    dtype: Dtypes = field(default_factory=Dtypes)
    picks: tuple[tuple[int, tuple[int, ...]], ...] = ()
    phase: str = "prefill"
    seed: int = 0
    name: str | None = None
    source: str | None = None
    home: int = field(init=False, repr=False, compare=False)
    position: int = field(init=False, repr=False, compare=False)
    replica: int = field(init=False, repr=False, compare=False)
    stage_layers: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        one_of("phase", self.phase, PHASES)
        whole_number("seed", self.seed, at_least=0)
        _check_plan(self.plan, self.mesh)
        layers: tuple[int, ...] = ()
        if self.model is not None:
            _check_heads(self.model, self.mesh)
            check_picks(self.model, dict(self.picks))
            if self.plan.shared_routed:
                placed_experts(self.model, self.plan)
            layers = split_layers(self.model.layers, self.mesh.stages, self.plan.stage_layers)
        object.__setattr__(self, "stage_layers", layers)
        replica, position, home = _find_token(self)
        object.__setattr__(self, "replica", replica)
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "home", home)

    @classmethod
    def from_dict(cls, data: object) -> Scenario:
        """A scenario from nested tables (JSON values).

        Raises:
            ConfigError: naming the key that is unknown, or the value that breaks a rule.
        """
        from tracer.scenario_read import scenario_from_dict

        return scenario_from_dict(data)

    @classmethod
    def from_toml(cls, text: str) -> Scenario:
        """A scenario from TOML text.

        Raises:
            ConfigError: as :meth:`from_dict`, or when the text is not TOML.
        """
        from tracer.scenario_files import scenario_from_text

        return scenario_from_text(text, ".toml")

    def to_dict(self) -> dict[str, Any]:
        """JSON values with every key; ``from_dict`` gives an equal scenario back."""
        from tracer.scenario_write import scenario_to_dict

        return scenario_to_dict(self)

    def to_toml(self) -> str:
        """TOML text; ``from_toml`` gives an equal scenario back."""
        from tracer.scenario_write import scenario_to_toml

        return scenario_to_toml(self)

    @property
    def landing(self) -> Landing:
        """How this scenario's prompt is cut over a replica."""
        return _landing(self)

    @property
    def is_last_position(self) -> bool:
        """Whether the token is T-1, the prompt's last."""
        return self.position == self.token.prompt - 1

    @property
    def dense_tp(self) -> int:
        """TP size of dense feed-forward layers."""
        return self.plan.dense_tp or self.mesh.size_of("tp")

    def need_model(self) -> ModelSpec:
        """The model.

        Raises:
            ConfigError: when the scenario has none.
        """
        if self.model is None:
            raise ConfigError(
                "model", None, "is needed to take a trip", "add a [model] table, or config = 'config.json'"
            )
        return self.model

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

    def layer_picks(self) -> dict[int, tuple[int, ...]]:
        """Experts of this token in every MoE layer, given or drawn, by layer.

        Given and drawn picks are the router's ``top_k``; shared experts that are routed come after them.
        """
        model = self.need_model()
        given = dict(self.picks)
        moe = [layer for layer in range(1, model.layers + 1) if model.is_moe(layer)]
        if not all(layer in given for layer in moe):
            drawn = draw_picks(model, len(moe), seed=self.seed, replica=self.replica, position=self.position)
            given = {layer: given.get(layer, picks) for layer, picks in zip(moe, drawn, strict=True)}
        return {layer: (*picks, *self.always_picked) for layer, picks in given.items()}

    @property
    def always_picked(self) -> range:
        """Experts that every token picks: the shared ones, where they are routed too."""
        routed = (self.model.experts or 0) if self.model is not None else 0
        shared = self.model.shared_experts if self.model is not None and self.plan.shared_routed else 0
        return range(routed, routed + shared)

    def with_token(self, **changes: Any) -> Scenario:
        """The same scenario following another token; ``changes`` are fields of :class:`Token`.

        Giving a position drops a GPU named before, and the other way round.
        """
        base: dict[str, Any] = {}
        if "position" in changes:
            base = {"gpu": None, "replica": self.replica}
        elif "gpu" in changes:
            base = {"position": None, "replica": None}
        return replace(self, token=replace(self.token, **(base | changes)))


def _landing(scenario: Scenario) -> Landing:
    mesh = scenario.mesh
    return Landing(
        scenario.token.prompt,
        mesh.size_of("cp"),
        mesh.size_of("tp"),
        zigzag=scenario.plan.landing == "zigzag",
    )


def _find_token(scenario: Scenario) -> tuple[int, int, int]:
    """(replica, position, home rank) of the token."""
    token, mesh, landing = scenario.token, scenario.mesh, _landing(scenario)
    replica, position = token.replica, token.position
    if token.gpu is not None:
        found = _check_gpu(token, mesh)
        replica = found["dp"]
        if position is None:
            position = landing.first_position_on(found["cp"], found["tp"], token.gpu)
    replica, position = replica or 0, position or 0
    if replica >= mesh.size_of("dp"):
        raise ConfigError(
            "token.replica",
            replica,
            f"must be one of the {mesh.size_of('dp')} replicas",
            f"try 0 to {mesh.size_of('dp') - 1}",
        )
    if position >= token.prompt:
        raise ConfigError(
            "token.position",
            position,
            f"must lie in the prompt of {token.prompt}",
            f"try 0 to {token.prompt - 1}",
        )
    cp, tp = landing.place_of(position)
    home = mesh.rank(tp=tp, cp=cp, dp=replica, pp=0)
    if token.gpu is not None and token.gpu != home:
        raise ConfigError(
            "token.gpu",
            token.gpu,
            f"is not where position {position} lands (GPU {home})",
            "give one of the two",
        )
    return replica, position, home


def _check_gpu(token: Token, mesh: Mesh) -> dict[str, int]:
    """Coordinates of ``token.gpu``, which must be a stage-0 rank of the given replica."""
    gpu = token.gpu
    if gpu is None or gpu >= mesh.world_size:
        raise ConfigError(
            "token.gpu",
            gpu,
            f"must be a GPU of the mesh's {mesh.world_size}",
            f"try 0 to {mesh.world_size - 1}",
        )
    found = mesh.coordinates(gpu)
    if found["pp"] != 0:
        twin = mesh.moved(gpu, "pp", 0)
        raise ConfigError(
            "token.gpu", gpu, f"is in stage {found['pp']}, but tokens land in stage 0", f"try GPU {twin}"
        )
    if token.replica is not None and token.replica != found["dp"]:
        raise ConfigError(
            "token.replica", token.replica, f"does not hold GPU {gpu}", f"try {found['dp']}, or leave it out"
        )
    return found


def _check_plan(plan: Plan, mesh: Mesh) -> None:
    tp = mesh.size_of("tp")
    if plan.dense_tp not in (None, 1, tp):
        raise ConfigError("mesh.dense_tp", plan.dense_tp, f"must be 1 or the mesh's tp = {tp}", f"try {tp}")
    if plan.contract == Contract.TP and (mesh.size_of("etp") != tp or mesh.size_of("ep") != 1):
        raise ConfigError(
            "mesh.contract",
            "tp",
            f"slices experts over tp: it needs ep = 1 and etp = tp = {tp}",
            f"drop ep = {mesh.size_of('ep')} and etp = {mesh.size_of('etp')}, or take contract = 'ep'",
        )


def _check_heads(model: ModelSpec, mesh: Mesh) -> None:
    """TP must divide the query heads; KV heads split over it or are replicated evenly."""
    tp = mesh.size_of("tp")
    if model.heads is not None and model.heads % tp:
        tries = listed(divisors(model.heads))
        raise ConfigError(
            "mesh.tp", tp, f"must divide the model's {model.heads} attention heads", f"try {tries}"
        )
    kv_heads = model.kv_heads
    if kv_heads is None or model.mla:
        return
    if (tp % kv_heads if kv_heads < tp else kv_heads % tp) != 0:
        choices = [
            size for size in divisors(model.heads or kv_heads) if kv_heads % size == 0 or size % kv_heads == 0
        ]
        raise ConfigError(
            "mesh.tp",
            tp,
            f"must divide the model's {kv_heads} KV heads, or be a multiple of them",
            f"try {listed(choices)}",
        )

"""One question in full: cluster, model, mesh, plan, placement, picks, token and phase."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tracer.errors import ConfigError, divisors, listed, one_of, whole_number
from tracer.model.dtype import Dtypes
from tracer.scenario.landing import DecodeLanding, Landing
from tracer.scenario.plan import Contract, Plan, check_dcp, default_dispatch, placed_experts, split_layers
from tracer.scenario.routing import check_picks, draw_picks
from tracer.scenario.token import Token, find_token

if TYPE_CHECKING:
    from tracer.mesh.cluster import Cluster
    from tracer.mesh.mesh import Mesh
    from tracer.model.spec import ModelSpec
    from tracer.scenario.placement import Placement


PHASES = ("prefill", "decode")


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
        check_dcp(self.plan, self.mesh, self.model)
        layers: tuple[int, ...] = ()
        if self.model is not None:
            _check_heads(self.model, self.mesh)
            check_picks(self.model, dict(self.picks))
            if self.plan.shared_routed:
                placed_experts(self.model, self.plan)
            layers = split_layers(self.model.layers, self.mesh.stages, self.plan.stage_layers)
        object.__setattr__(self, "stage_layers", layers)
        replica, position, home = find_token(self)
        object.__setattr__(self, "replica", replica)
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "home", home)

    @classmethod
    def from_dict(cls, data: object) -> Scenario:
        """A scenario from nested tables (JSON values).

        Raises:
            ConfigError: naming the key that is unknown, or the value that breaks a rule.
        """
        from tracer.scenario.read import scenario_from_dict

        return scenario_from_dict(data)

    @classmethod
    def from_toml(cls, text: str) -> Scenario:
        """A scenario from TOML text.

        Raises:
            ConfigError: as :meth:`from_dict`, or when the text is not TOML.
        """
        from tracer.scenario.files import scenario_from_text

        return scenario_from_text(text, ".toml")

    def to_dict(self) -> dict[str, Any]:
        """JSON values with every key; ``from_dict`` gives an equal scenario back."""
        from tracer.scenario.files import scenario_to_dict

        return scenario_to_dict(self)

    def to_toml(self) -> str:
        """TOML text; ``from_toml`` gives an equal scenario back."""
        from tracer.scenario.files import scenario_to_toml

        return scenario_to_toml(self)

    @property
    def landing(self) -> Landing:
        """How this scenario's prompt is cut over a replica."""
        cp, tp = self.mesh.size_of("cp"), self.mesh.size_of("tp")
        return Landing(self.token.prompt, cp, tp, zigzag=self.plan.landing == "zigzag")

    @property
    def decode_landing(self) -> DecodeLanding:
        """How the tokens of a decode step are cut over a replica."""
        token, cp, tp = self.token, self.mesh.size_of("cp"), self.mesh.size_of("tp")
        return DecodeLanding(token.prompt, cp, tp, token.first_cp, token.batch or tp)

    @property
    def decodes(self) -> bool:
        """Whether the token is generated, not read."""
        return self.phase == "decode"

    @property
    def slot(self) -> int | None:
        """Slot of the batch that the token has in decode; as given in prefill, which has none."""
        if self.token.slot is not None or not self.decodes:
            return self.token.slot
        tp = self.mesh.dense.coordinate(self.home, "tp")
        return tp * self.decode_landing.rows_per_rank

    @property
    def is_last_position(self) -> bool:
        """Whether the token is T-1, the prompt's last."""
        return self.position == self.token.prompt - 1

    @property
    def to_head(self) -> bool:
        """Whether the LM head reads the token's row: all in decode, T-1 of a prompt, or all for logprobs."""
        return self.decodes or self.is_last_position or self.token.prompt_logprobs

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
            base = {"gpu": None, "replica": self.replica, "slot": self.slot}
        elif "gpu" in changes:
            base = {"position": None, "replica": None, "slot": None}
        return replace(self, token=replace(self.token, **(base | changes)))

    def with_phase(self, phase: str) -> Scenario:
        """The same deployment in the other phase: its token is the first new one, or position 0.

        Dispatch goes back to the phase's default.
        """
        if phase == self.phase:
            return self
        token = replace(self.token, position=None, gpu=None, replica=self.replica)
        plan = replace(self.plan, dispatch=default_dispatch(phase))
        return replace(self, phase=phase, plan=plan, token=token)


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

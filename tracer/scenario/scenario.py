"""One question in full: a deployment, and the token, phase and picks that are asked about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

from tracer.errors import ConfigError, whole_number, word_of
from tracer.mesh.axes import Axis
from tracer.scenario.deployment import BareDeployment, Deployment
from tracer.scenario.landing import DecodeLanding, Landing, find_token
from tracer.scenario.plan import KvExchange, default_dispatch
from tracer.scenario.read import parse_text, read_tables
from tracer.scenario.routing import check_picks, draw_picks
from tracer.scenario.token import Phase, Token
from tracer.scenario.write import changed_tables, tables_of, toml_of

if TYPE_CHECKING:
    from typing import Self

    from tracer.mesh.cluster import Cluster
    from tracer.mesh.mesh import Mesh
    from tracer.model.dtype import Dtypes
    from tracer.model.spec import ModelSpec
    from tracer.scenario.chunks import LayerChunk
    from tracer.scenario.placement import Placement
    from tracer.scenario.plan import Plan


@dataclass(frozen=True, slots=True)
class BareScenario:
    """A question of a deployment that may have no model: groups, coordinates, where the token lands.

    Raises:
        ConfigError: for a token that the deployment does not have.
    """

    deployment: BareDeployment
    token: Token
    phase: Phase = Phase.PREFILL
    picks: tuple[tuple[int, tuple[int, ...]], ...] = ()
    seed: int = 0
    home: int = field(init=False, repr=False, compare=False)
    position: int = field(init=False, repr=False, compare=False)
    replica: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "phase", word_of("phase", self.phase, Phase))
        _check_phase(self.phase, self.plan.kv_exchange)
        whole_number("seed", self.seed, at_least=0)
        replica, position, home = find_token(self.token, self.mesh, self.plan, self.phase)
        object.__setattr__(self, "replica", replica)
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "home", home)

    @classmethod
    def from_dict(
        cls, data: object, *, read_config: Callable[[str], ModelSpec] | None = None
    ) -> BareScenario:
        """A scenario from nested tables (JSON values): a :class:`Scenario` where they have a model.

        ``read_config`` turns ``model.config``, a path, into a model; without it the key is refused, so that
        tables from a stranger never open a file.

        Raises:
            ConfigError: naming the key that is unknown, or the value that breaks a rule.
        """
        parts = read_tables(data, read_config=read_config)
        asked = (parts.token, parts.phase, parts.picks, parts.seed)
        if isinstance(parts.deployment, Deployment):
            return Scenario(parts.deployment, *asked)
        return BareScenario(parts.deployment, *asked)

    @classmethod
    def from_toml(cls, text: str) -> BareScenario:
        """A scenario from TOML text.

        Raises:
            ConfigError: as :meth:`from_dict`, or when the text is not TOML.
        """
        return cls.from_dict(parse_text(text, ".toml"))

    def to_dict(self) -> dict[str, Any]:
        """JSON values with every key; ``from_dict`` gives an equal scenario back."""
        return tables_of(self.deployment, self.token, self.phase, self.picks, self.seed)

    def to_toml(self) -> str:
        """TOML text; ``from_toml`` gives an equal scenario back."""
        return toml_of(self.to_dict())

    @property
    def mesh(self) -> Mesh:
        """The deployment's mesh."""
        return self.deployment.mesh

    @property
    def cluster(self) -> Cluster:
        """The machines it runs on."""
        return self.deployment.cluster

    @property
    def plan(self) -> Plan:
        """How the mesh is run."""
        return self.deployment.plan

    @property
    def dtype(self) -> Dtypes:
        """Dtypes of what moves and what is held."""
        return self.deployment.dtype

    @property
    def name(self) -> str | None:
        """What the deployment is called."""
        return self.deployment.name

    @property
    def source(self) -> str | None:
        """Who describes the deployment."""
        return self.deployment.source

    @property
    def landing(self) -> Landing:
        """How this scenario's prompt is cut over a replica."""
        return Landing.of(self.token, self.mesh, self.plan)

    @property
    def decode_landing(self) -> DecodeLanding:
        """How the tokens of a decode step are cut over a replica."""
        return DecodeLanding.of(self.token, self.mesh)

    @property
    def decodes(self) -> bool:
        """Whether the token is generated, not read."""
        return self.phase is Phase.DECODE

    @property
    def slot(self) -> int | None:
        """Slot of the batch that the token has in decode; as given in prefill, which has none."""
        if self.token.slot is not None or not self.decodes:
            return self.token.slot
        return self.mesh.dense.coordinate(self.home, Axis.TP) * self.decode_landing.rows_per_rank

    @property
    def is_last_position(self) -> bool:
        """Whether the token is T-1, the prompt's last."""
        return self.position == self.token.prompt - 1

    @property
    def to_head(self) -> bool:
        """Whether the LM head reads the token's row: all in decode, T-1 of a prompt, or all for logprobs."""
        return self.decodes or self.is_last_position or self.token.prompt_logprobs

    def stage_of(self, rank: int) -> int:
        """The pipeline stage of a rank."""
        return self.mesh.stage_of(rank)

    def with_(self, **changes: Any) -> Self:
        """The same scenario with other parts, checked again.

        ``changes`` are fields of the scenario (``token``, ``phase``, ``picks``, ``seed``) or of its
        deployment (``mesh``, ``cluster``, ``plan``, ``model``, ``placement``, ...), or keys of a scenario
        file's mesh, token, dtype and cluster (``tp=4``, ``position=7``, ``kv="fp8"``). What follows from a
        key (edp, the number of nodes) follows again.

        >>> from tracer.scenario.files import load_scenario
        >>> load_scenario("six-cuts").with_(tp=4, cp=1, position=3).mesh.world_size
        32

        Raises:
            ConfigError: for a name that is neither, or a part that does not fit the others.
        """
        own = _part_names(self)
        theirs = _part_names(changes.get("deployment", self.deployment))
        keys = {name: value for name, value in changes.items() if name not in own and name not in theirs}
        if keys:
            parts = {name: value for name, value in changes.items() if name not in keys}
            changed = changed_tables(self.with_(**parts).to_dict(), keys)
            return cast("Self", type(self).from_dict(changed))
        asked = {name: value for name, value in changes.items() if name in own}
        placed = {name: value for name, value in changes.items() if name in theirs}
        if placed:
            asked["deployment"] = replace(asked.get("deployment", self.deployment), **placed)
        return replace(self, **asked)

    def with_token(self, **changes: Any) -> Self:
        """The same scenario following another token; ``changes`` are fields of :class:`Token`.

        Giving a position drops a GPU named before, and the other way round.
        """
        base: dict[str, Any] = {}
        if "position" in changes:
            base = {"gpu": None, "replica": self.replica, "slot": self.slot, "text": None}
        elif "gpu" in changes:
            base = {"position": None, "replica": None, "slot": None, "text": None}
        return self.with_(token=replace(self.token, **(base | changes)))

    def with_phase(self, phase: Phase) -> Self:
        """The same deployment in the other phase: its token is the first new one, or position 0.

        Dispatch goes back to the phase's default.
        """
        phase = word_of("phase", phase, Phase)
        if phase is self.phase:
            return self
        token = replace(self.token, position=None, gpu=None, replica=self.replica)
        plan = replace(self.plan, dispatch=default_dispatch(phase))
        return self.with_(phase=phase, plan=plan, token=token)


@dataclass(frozen=True, slots=True)
class Scenario(BareScenario):
    """A deployment and one question of it; the model is there.

    ``picks`` are (layer, experts) pairs, layers numbered from 1.

    Raises:
        ConfigError: for a token or picks that the deployment does not have.
    """

    deployment: Deployment

    def __post_init__(self) -> None:
        check_picks(self.model, dict(self.picks))
        # A class that slots=True made anew is not the one that super() would look for.
        BareScenario.__post_init__(self)

    @classmethod
    def from_dict(cls, data: object, *, read_config: Callable[[str], ModelSpec] | None = None) -> Scenario:
        """A scenario from nested tables (JSON values), as :meth:`BareScenario.from_dict`.

        Raises:
            ConfigError: also when there is no model.
        """
        return with_model(BareScenario.from_dict(data, read_config=read_config))

    @classmethod
    def from_toml(cls, text: str) -> Scenario:
        """A scenario from TOML text.

        Raises:
            ConfigError: as :meth:`from_dict`, or when the text is not TOML.
        """
        return cls.from_dict(parse_text(text, ".toml"))

    @property
    def model(self) -> ModelSpec:
        """The model that is served."""
        return self.deployment.model

    @property
    def placement(self) -> Placement | None:
        """Which EP rank holds which expert; None where the model has none."""
        return self.deployment.placement

    @property
    def layer_placements(self) -> tuple[tuple[int, Placement], ...]:
        """Placements of single layers."""
        return self.deployment.layer_placements

    @property
    def stage_layers(self) -> tuple[int, ...]:
        """How many layers each stage has."""
        return self.deployment.stage_layers

    @property
    def stage_runs(self) -> tuple[tuple[range, ...], ...]:
        """Each stage's runs of layers, counted from 1, ascending."""
        return self.deployment.stage_runs

    @property
    def chunks(self) -> tuple[LayerChunk, ...]:
        """Runs of layers in the order a token meets them, each with its stage."""
        return self.deployment.chunks

    @property
    def head_stage(self) -> int:
        """The stage with the LM head."""
        return self.deployment.head_stage

    @property
    def dense_tp(self) -> int:
        """TP size of dense feed-forward layers."""
        return self.deployment.dense_tp

    @property
    def always_picked(self) -> range:
        """Experts that every token picks: the shared ones, where they are routed too."""
        return self.deployment.always_picked

    def placement_of(self, layer: int) -> Placement:
        """Expert placement of a MoE layer.

        Raises:
            ConfigError: when the model has no experts.
        """
        return self.deployment.placement_of(layer)

    def layers_of(self, stage: int) -> tuple[int, ...]:
        """Layers of a stage, counted from 1, ascending."""
        return self.deployment.layers_of(stage)

    def stage_of_layer(self, layer: int) -> int:
        """The stage that a layer, counted from 1, is in.

        Raises:
            ConfigError: when there is no such layer.
        """
        return self.deployment.stage_of_layer(layer)

    def layer_picks(self) -> dict[int, tuple[int, ...]]:
        """Experts of this token in every MoE layer, given or drawn, by layer.

        Given and drawn picks are the router's ``top_k``; shared experts that are routed come after them.
        """
        model = self.model
        given = dict(self.picks)
        moe = [layer for layer in range(1, model.layers + 1) if model.is_moe(layer)]
        if not all(layer in given for layer in moe):
            drawn = draw_picks(model, len(moe), seed=self.seed, replica=self.replica, position=self.position)
            given = {layer: given.get(layer, picks) for layer, picks in zip(moe, drawn, strict=True)}
        return {layer: (*picks, *self.always_picked) for layer, picks in given.items()}


def _check_phase(phase: Phase, kv_exchange: KvExchange) -> None:
    """No framework decodes over two levels: ``a2a+p2p`` is Transformer Engine's attention of training.

    Megatron-Core 0.16.1 hands it to Transformer Engine alone (``extensions/transformer_engine.py``), and its
    inference contexts keep K/V by other means.
    """
    if phase is Phase.DECODE and kv_exchange is KvExchange.HIERARCHICAL:
        raise ConfigError(
            "mesh.kv_exchange",
            "hierarchical",
            "is Transformer Engine's training attention (a2a+p2p), and no framework decodes over two levels",
            "take kv_exchange = 'ulysses' or 'ring' in decode",
        )


def with_model(scenario: BareScenario) -> Scenario:
    """The scenario, when it has a model.

    Raises:
        ConfigError: when it has none.
    """
    if isinstance(scenario, Scenario):
        return scenario
    raise ConfigError(
        "model", None, "is needed to take a trip", "add a [model] table, or config = 'config.json'"
    )


def _part_names(part: BareScenario | BareDeployment) -> list[str]:
    """Names of the fields that a part is made from."""
    return [each.name for each in fields(part) if each.init]

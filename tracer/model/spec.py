"""What a model is: the sizes that decide what moves and what is held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

from tracer.errors import ConfigError, check_known_keys, check_table
from tracer.model.router_kind import RouterKind
from tracer.model.rules import SIZE_EXAMPLES, check_model, fill_defaults
from tracer.model.weight_format import WeightFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A decoder-only transformer. Only ``layers`` is required; what is absent and has no default is None.

    Sizes are elements. Defaults: ``kv_heads`` = heads; ``head_dim`` = hidden / heads where that divides
    and K/V are not MLA latents; ``v_head_dim`` = head_dim; ``shared_hidden`` = shared_experts x
    expert_hidden. ``dense_layers`` is a count (the first n layers are dense) or 1-based layer numbers;
    without ``experts`` all layers are dense. ``shared_hidden`` is the width of all shared experts together.
    ``weights`` is the storage of every part that has no ``*_weights`` of its own (None: whatever the
    scenario declares). ``left_out`` names the parts of the real model that no count here includes.
    Defaults are filled in once: a ``dataclasses.replace`` that changes ``hidden`` keeps ``head_dim``.

    Raises:
        ConfigError: naming ``model.<field>``.
    """

    layers: int
    name: str | None = None
    source: str | None = None
    hidden: int | None = None
    vocab: int | None = None
    tie_embeddings: bool = False

    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    v_head_dim: int | None = None
    kv_lora_rank: int | None = None
    q_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None

    dense_layers: int | tuple[int, ...] = 0
    dense_hidden: int | None = None

    experts: int | None = None
    top_k: int | None = None
    expert_hidden: int | None = None
    shared_experts: int = 0
    shared_hidden: int | None = None
    shared_gate: bool = False
    expert_groups: int | None = None
    top_groups: int | None = None
    router: RouterKind | None = None
    routed_scale: float | None = None
    renormalise: bool | None = None

    weights: WeightFormat | None = None
    attention_weights: WeightFormat | None = None
    dense_weights: WeightFormat | None = None
    shared_weights: WeightFormat | None = None
    expert_weights: WeightFormat | None = None

    left_out: tuple[str, ...] = ()
    _dense_set: frozenset[int] = field(init=False, repr=False, compare=False, default=frozenset())

    def __post_init__(self) -> None:
        """Check every value, then fill the defaults that follow from others."""
        for name, value in check_model(self).items():
            object.__setattr__(self, name, value)
        for name, value in fill_defaults(self).items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, table: Mapping[str, object]) -> ModelSpec:
        """A spec from a ``[model]`` table; a null is an absent key.

        Raises:
            ConfigError: for an unknown key (with the nearest known one), no layers, or a bad value.
        """
        given = {key: value for key, value in check_table("model", table).items() if value is not None}
        check_known_keys("model", given, _keys())
        if "layers" not in given:
            raise ConfigError("model.layers", None, "is needed to lay out the model", "write layers = 8")
        return cls(**given)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """Every field as plain JSON values, absent ones as None; ``from_dict`` gives an equal spec back."""
        return {name: _plain(getattr(self, name)) for name in _keys()}

    @property
    def mla(self) -> bool:
        """Whether K/V are cached as one latent a token (multi-head latent attention)."""
        return self.kv_lora_rank is not None

    @property
    def moe_layers(self) -> int:
        """Layers with routed experts."""
        if self.experts is None:
            return 0
        dense = self.dense_layers
        return self.layers - (dense if isinstance(dense, int) else len(dense))

    def is_moe(self, layer: int) -> bool:
        """Whether ``layer`` (1-based) has routed experts; the same cost for any depth.

        Raises:
            ConfigError: when there is no such layer.
        """
        if not 1 <= layer <= self.layers:
            raise ConfigError("layer", layer, f"must be from 1 to {self.layers}", f"try {self.layers}")
        if self.experts is None:
            return False
        dense = self.dense_layers
        return layer > dense if isinstance(dense, int) else layer not in self._dense_set

    @property
    def qk_head_dim(self) -> int:
        """Width of one query head: with MLA the part without and the part with rotary embedding."""
        if self.mla:
            return self.need("qk_nope_head_dim", "size a head") + self.need("qk_rope_head_dim", "size a head")
        return self.need("head_dim", "size a head")

    @property
    def kv_values_per_token(self) -> int:
        """Elements one layer caches for one token: K and V of every KV head; MLA: latent and rotary key."""
        why = "count the K/V of a token"
        if self.mla:
            return self.need("kv_lora_rank", why) + self.need("qk_rope_head_dim", why)
        return self.need("kv_heads", why) * (self.need("head_dim", why) + self.need("v_head_dim", why))

    def need(self, size: str, why: str) -> int:
        """The size called ``size``; ``why`` completes the sentence "is needed to ...".

        Raises:
            ConfigError: when the model does not state it.
        """
        value: int | None = getattr(self, size)
        if value is None:
            fix = f"add it to [model], for instance {size} = {SIZE_EXAMPLES[size]}"
            raise ConfigError(f"model.{size}", None, f"is needed to {why}", fix)
        return value


def _keys() -> list[str]:
    """Keys of a ``[model]`` table."""
    return [each.name for each in fields(ModelSpec) if each.init]


def _plain(value: object) -> object:
    """The JSON form of a field."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, StrEnum) else value

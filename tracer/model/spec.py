"""What a model is: the sizes that decide what moves and what is held, and what they must satisfy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from tracer.errors import (
    MAX_SIZE,
    ConfigError,
    check_bool,
    check_known_keys,
    check_table,
    check_text,
    divisors,
    finite_number,
    nearest,
    whole_number,
)
from tracer.model.layer_runs import layer_kinds_from, layer_kinds_table
from tracer.model.layers import AttentionType as Type
from tracer.model.layers import (
    DenseFfn,
    Extra,
    HeadAttention,
    LatentAttention,
    LayerKind,
    MoeFfn,
    QkNorm,
    extras_from,
    extras_table,
)
from tracer.model.main_sizes import main_sizes
from tracer.model.router_kind import RouterKind
from tracer.model.stored_as import StoredAs, stored_from, stored_table
from tracer.model.weight_format import WeightFormat

T = TypeVar("T")
Word = TypeVar("Word", bound=StrEnum)

MAX_LAYERS = 4_096
MAX_EXPERTS = 1 << 15
MOST = {
    "experts": MAX_EXPERTS, "top_k": 256, "expert_groups": 64, "heads": 1 << 17, "kv_heads": 1 << 17,
}  # fmt: skip
"""No model comes near these; layers and experts are walked one at a time, and picks are stored as int16."""
SIZE_EXAMPLES = {
    "hidden": 4096, "vocab": 128000, "heads": 32, "kv_heads": 8, "head_dim": 128, "v_head_dim": 128,
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "positions": 1024, "dense_hidden": 14336, "experts": 32, "top_k": 2,
    "expert_hidden": 2048, "shared_hidden": 2048,
    "expert_groups": 8, "top_groups": 4,
}  # fmt: skip
FORMAT_FIELDS = ("weights", "attention_weights", "dense_weights", "shared_weights", "expert_weights")
SWITCHES = (
    "tie_embeddings", "shared_gate", "renormalise", "qkv_bias", "out_bias", "ffn_bias", "gated", "norm_bias",
    "head_bias", "final_norm",
)  # fmt: skip
MAX_VISION_PARAMETERS = 10**12
NEEDS_EXPERTS = (
    "top_k", "expert_hidden", "shared_experts", "shared_hidden", "shared_gate", "expert_groups",
    "top_groups", "router", "routed_scale", "renormalise", "shared_weights", "expert_weights",
)  # fmt: skip
NEEDS_MLA = ("q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A decoder-only transformer. Only ``layers`` is required; what is absent and has no default is None.

    Sizes are elements. Defaults: ``kv_heads`` = heads; ``head_dim`` = hidden / heads where that divides
    and K/V are not MLA latents; ``v_head_dim`` = head_dim; ``shared_hidden`` = shared_experts x
    expert_hidden. ``dense_layers`` is a count (the first n layers are dense) or 1-based layer numbers;
    without ``experts`` all layers are dense. ``shared_hidden`` is the width of all shared experts together.
    ``weights`` is the storage of every part that has no ``*_weights`` of its own (None: whatever the
    scenario declares); ``stored`` has the exceptions to that. ``left_out`` names the parts of the real
    model that no count here includes.
    ``layer_kinds`` has a kind for each layer where the layers are not alike; it then decides what is
    counted, and the sizes above describe the model's main kind of attention, FFN and experts (those that
    are absent are taken from it).
    ``qk_norm``, ``qkv_bias``, ``out_bias``, ``ffn_bias``, ``gated`` and ``norm_bias`` describe layers that
    are alike. ``positions`` is the length of a learned position table.
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

    qk_norm: QkNorm = QkNorm.NONE
    qkv_bias: bool = False
    out_bias: bool = False
    gated: bool = True
    ffn_bias: bool = False
    norm_bias: bool = False
    final_norm: bool = True
    head_bias: bool = False
    positions: int | None = None
    layer_kinds: tuple[LayerKind, ...] = ()
    extras: tuple[Extra, ...] = ()
    stored: tuple[StoredAs, ...] = ()
    vision_parameters: int = 0
    mtp_layers: int = 0

    left_out: tuple[str, ...] = ()
    _kinds: tuple[tuple[LayerKind, tuple[int, ...]], ...] = field(
        init=False, repr=False, compare=False, default=()
    )
    _dense_set: frozenset[int] = field(init=False, repr=False, compare=False, default=frozenset())

    def __post_init__(self) -> None:
        """Check every value, then fill the defaults that follow from others."""
        for name, value in _check_model(self).items():
            object.__setattr__(self, name, value)
        for name, value in _fill_defaults(self).items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, table: Mapping[str, object]) -> ModelSpec:
        """A spec from a ``[model]`` table; a null is an absent key.

        Raises:
            ConfigError: for an unknown key (with the nearest known one), no layers, or a bad value.
        """
        given = {key: value for key, value in check_table("model", table).items() if value is not None}
        check_known_keys("model", given, spec_keys())
        if "layers" not in given:
            raise ConfigError("model.layers", None, "is needed to lay out the model", "write layers = 8")
        return cls(**given)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """Every field as plain JSON values, absent ones as None; ``from_dict`` gives an equal spec back.

        Fields that say how layers differ or are stored are left out where they say nothing.
        """
        table = {name: _plain(getattr(self, name)) for name in spec_keys()}
        for each in fields(self):
            if each.name in _SAID_IF_SET and getattr(self, each.name) == each.default:
                del table[each.name]
        if self.layer_kinds:
            table["layer_kinds"] = layer_kinds_table(self.layer_kinds)
        if self.stored:
            table["stored"] = stored_table(self.stored)
        if self.extras:
            table["extras"] = extras_table(self.extras)
        return table

    def kinds(self, why: str = "say what its layers are") -> tuple[tuple[LayerKind, tuple[int, ...]], ...]:
        """Each kind of layer with the numbers (from 1) of the layers that are of it, in order of first use.

        Raises:
            ConfigError: naming ``model.<field>``, for a size that is not stated and is needed.
        """
        if not self._kinds:
            found: dict[LayerKind, list[int]] = {}
            if self.layer_kinds:
                for number, kind in enumerate(self.layer_kinds, start=1):
                    found.setdefault(kind, []).append(number)
            else:
                dense = [n for n in range(1, self.layers + 1) if not self.is_moe(n)]
                moe = [n for n in range(1, self.layers + 1) if self.is_moe(n)]
                groups = [
                    (layers, _uniform_kind(self, why, is_moe=layers is moe))
                    for layers in (dense, moe)
                    if layers
                ]
                found = {kind: layers for layers, kind in sorted(groups, key=lambda group: group[0][0])}
            made = tuple((kind, tuple(layers)) for kind, layers in found.items())
            object.__setattr__(self, "_kinds", made)
        return self._kinds

    def kind_of(self, layer: int) -> LayerKind:
        """The kind of a layer, numbered from 1.

        Raises:
            ConfigError: when there is no such layer, or a size that is needed is not stated.
        """
        is_moe = self.is_moe(layer)
        if self.layer_kinds:
            return self.layer_kinds[layer - 1]
        return next(kind for kind, _ in self.kinds() if kind.is_moe == is_moe)

    @property
    def is_uniform(self) -> bool:
        """Whether every layer has the same attention over all earlier tokens, as trips count it."""
        return not self.layer_kinds

    @property
    def mla(self) -> bool:
        """Whether K/V are cached as one latent a token (multi-head latent attention)."""
        return self.kv_lora_rank is not None

    @property
    def moe_part(self) -> MoeFfn | None:
        """The first MoE block of layers that are not alike; None where they are, or none has experts."""
        found = (kind.feed_forward for kind in self.layer_kinds if kind.is_moe)
        part = next(found, None)
        return part if isinstance(part, MoeFfn) else None

    @property
    def expert_row(self) -> int:
        """Elements of a row as experts take it: the latent of LatentMoE, else the hidden size.

        Raises:
            ConfigError: when the hidden size is not stated.
        """
        part = self.moe_part
        return (part.latent if part else 0) or self.need("hidden", "size a row")

    @property
    def zero_experts(self) -> int:
        """Experts without weights that the router picks among too: a pick of one goes nowhere."""
        part = self.moe_part
        return part.zero_experts if part else 0

    @property
    def moe_layers(self) -> int:
        """Layers with routed experts."""
        if self.layer_kinds:
            return sum(kind.is_moe for kind in self.layer_kinds)
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
        if self.layer_kinds:
            return self.layer_kinds[layer - 1].is_moe
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


_SAID_IF_SET = frozenset({
    "qk_norm", "qkv_bias", "out_bias", "gated", "ffn_bias", "norm_bias", "final_norm", "head_bias",
    "positions", "layer_kinds", "extras", "stored", "vision_parameters", "mtp_layers",
})  # fmt: skip


def _uniform_kind(spec: ModelSpec, why: str, *, is_moe: bool) -> LayerKind:
    """The kind of the layers of a model whose layers are alike, dense or with experts."""
    attention: HeadAttention | LatentAttention
    if spec.mla:
        attention = LatentAttention(
            type=Type.MLA,
            heads=spec.need("heads", why),
            kv_lora_rank=spec.need("kv_lora_rank", why),
            q_lora_rank=spec.q_lora_rank,
            qk_nope_head_dim=spec.need("qk_nope_head_dim", why),
            qk_rope_head_dim=spec.need("qk_rope_head_dim", why),
            v_head_dim=spec.need("v_head_dim", why),
            bias=spec.out_bias,
        )
    else:
        attention = HeadAttention(
            type=Type.FULL,
            heads=spec.need("heads", why),
            kv_heads=spec.need("kv_heads", why),
            head_dim=spec.need("head_dim", why),
            v_head_dim=spec.need("v_head_dim", why),
            qkv_bias=spec.qkv_bias,
            out_bias=spec.out_bias,
            qk_norm=spec.qk_norm,
        )
    ffn: DenseFfn | MoeFfn
    if is_moe:
        ffn = MoeFfn(
            experts=spec.need("experts", why),
            top_k=spec.need("top_k", why),
            width=spec.need("expert_hidden", why),
            gated=spec.gated,
            bias=spec.ffn_bias,
            shared_width=spec.need("shared_hidden", why) if spec.shared_experts else 0,
            shared_gate=spec.shared_gate,
        )
    else:
        ffn = DenseFfn(width=spec.need("dense_hidden", why), gated=spec.gated, bias=spec.ffn_bias)
    return LayerKind(attention=attention, feed_forward=ffn, norm_bias=spec.norm_bias)


def spec_keys() -> list[str]:
    """Keys of a ``[model]`` table."""
    return [each.name for each in fields(ModelSpec) if each.init]


def _plain(value: object) -> object:
    """The JSON form of a field."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, StrEnum) else value


def _check_model(spec: ModelSpec) -> dict[str, object]:
    """The fields of ``spec`` in their final types, once every rule holds.

    Raises:
        ConfigError: naming ``model.<field>``.
    """
    whole_number("model.layers", spec.layers, at_most=MAX_LAYERS)
    final = _single_values(spec) | _dense_layers(spec.layers, spec.dense_layers)
    _check_owner(spec, NEEDS_EXPERTS, "experts", "describes experts")
    _check_owner(spec, NEEDS_MLA, "kv_lora_rank", "is a part of MLA")
    _check_heads(spec)
    _check_experts(spec)
    return final


def _fill_defaults(spec: ModelSpec) -> dict[str, object]:
    """Values for the absent fields that follow from others; ``spec`` has passed the checks."""
    kinds = main_sizes(spec.layer_kinds) if spec.layer_kinds else {}
    filled: dict[str, Any] = {
        name: size for name, size in kinds.items() if getattr(spec, name) is None and size is not None
    }

    def size(name: str) -> Any:
        return filled.get(name, getattr(spec, name))

    filled["kv_heads"] = size("kv_heads") or size("heads")
    hidden, heads, head_dim = spec.hidden, size("heads"), size("head_dim")
    mla = size("kv_lora_rank") is not None
    if head_dim is None and not mla and hidden and heads and hidden % heads == 0:
        head_dim = hidden // heads
    if not mla:
        filled |= {"head_dim": head_dim, "v_head_dim": size("v_head_dim") or head_dim}
    if spec.shared_experts and size("shared_hidden") is None and size("expert_hidden"):
        filled["shared_hidden"] = spec.shared_experts * size("expert_hidden")
    return filled


def _single_values(spec: ModelSpec) -> dict[str, object]:
    """Check each field alone; those whose type a reader may give more loosely come back converted."""
    for name in SIZE_EXAMPLES:
        _if_given(spec, name, partial(whole_number, at_most=MAX_SIZE))
    for name, most in MOST.items():
        if getattr(spec, name) is not None:
            whole_number(f"model.{name}", getattr(spec, name), at_most=most)
    whole_number("model.shared_experts", spec.shared_experts, at_least=0, at_most=MAX_EXPERTS)
    for name in SWITCHES:
        _if_given(spec, name, check_bool)
    whole_number("model.vision_parameters", spec.vision_parameters, at_least=0, at_most=MAX_VISION_PARAMETERS)
    whole_number("model.mtp_layers", spec.mtp_layers, at_least=0, at_most=MAX_LAYERS)
    for name in ("name", "source"):
        _if_given(spec, name, check_text)
    final: dict[str, object] = {name: _word(spec, name, WeightFormat) for name in FORMAT_FIELDS}
    final["router"] = _word(spec, "router", RouterKind)
    final["routed_scale"] = _if_given(spec, "routed_scale", partial(finite_number, at_most=MAX_SIZE))
    final["qk_norm"] = _word(spec, "qk_norm", QkNorm) or QkNorm.NONE
    final["layer_kinds"] = layer_kinds_from(spec.layer_kinds, spec.layers)
    final["extras"] = extras_from("model.extras", spec.extras)
    final["stored"] = stored_from(spec.stored, spec.layers)
    final["left_out"] = _texts("model.left_out", spec.left_out)
    return final


def _if_given(spec: ModelSpec, name: str, check: Callable[[str, object], T]) -> T | None:
    """The checked value of a field, or None when it is absent."""
    value: object = getattr(spec, name)
    return None if value is None else check(f"model.{name}", value)


def _word(spec: ModelSpec, name: str, words: type[Word]) -> Word | None:
    """The enum member that a field's text stands for, or None when it is absent."""
    value: object = getattr(spec, name)
    if value is None:
        return None
    if not isinstance(value, str) or value not in list(words):
        allowed = [str(word) for word in words]
        fix = nearest(value, allowed) if isinstance(value, str) else f"try {allowed[0]!r}"
        raise ConfigError(f"model.{name}", value, f"must be one of {', '.join(allowed)}", fix)
    return words(value)


def _texts(field: str, value: object) -> tuple[str, ...]:
    """A list or tuple of texts, as a tuple."""
    if not isinstance(value, list | tuple):
        raise ConfigError(field, value, "must be a list of texts", "write ['...']")
    return tuple(check_text(field, each) for each in value)


def _dense_layers(layers: int, value: object) -> dict[str, object]:
    """``dense_layers`` as a count or an ascending tuple, and the set that answers ``is_moe`` at once."""
    field = "model.dense_layers"
    if not isinstance(value, list | tuple):
        return {"dense_layers": whole_number(field, value, at_least=0, at_most=layers)}
    numbers = [whole_number(field, each, at_most=layers) for each in value]
    as_set = frozenset(numbers)
    if len(as_set) != len(numbers):
        raise ConfigError(field, value, "must name each layer once", f"write {sorted(as_set)}")
    return {"dense_layers": tuple(sorted(numbers)), "_dense_set": as_set}


def _check_owner(spec: ModelSpec, names: tuple[str, ...], owner: str, role: str) -> None:
    """None of ``names`` is set where ``owner``, which gives them their meaning, is absent."""
    if getattr(spec, owner) is not None:
        return
    for name in names:
        value = getattr(spec, name)
        if value is not None and value is not False and value != 0:
            fix = f"add {owner}, for instance {owner} = {SIZE_EXAMPLES[owner]}, or leave {name} out"
            raise ConfigError(f"model.{name}", value, f"{role}, and model.{owner} is absent", fix)


def _check_heads(spec: ModelSpec) -> None:
    """KV heads serve equal shares of the query heads."""
    if spec.heads and spec.kv_heads and spec.heads % spec.kv_heads:
        fits = [n for n in divisors(spec.heads) if n <= spec.kv_heads]
        raise ConfigError(
            "model.kv_heads", spec.kv_heads, f"must divide heads={spec.heads}", f"try {fits[-1]}"
        )


def _check_experts(spec: ModelSpec) -> None:
    """Picks and shared width fit the experts there are."""
    _at_most(spec, "top_k", "experts", spec.experts)
    if spec.shared_hidden is not None and not spec.shared_experts:
        fix = "add shared_experts = 1"
        raise ConfigError("model.shared_hidden", spec.shared_hidden, "needs shared experts", fix)
    for name, other in (("top_groups", "expert_groups"), ("expert_groups", "top_groups")):
        if getattr(spec, name) is None and getattr(spec, other) is not None:
            fix = f"add {name} or leave {other} out"
            raise ConfigError(f"model.{name}", None, f"must come with {other}", fix)
    if spec.experts and spec.expert_groups and spec.top_groups:
        _check_groups(spec, spec.experts, spec.expert_groups, spec.top_groups)


def _check_groups(spec: ModelSpec, experts: int, groups: int, top_groups: int) -> None:
    """Groups are equal parts of the experts, and the ones kept hold ``top_k`` of them."""
    if experts % groups:
        fit = [number for number in divisors(experts) if number <= groups][-1]
        raise ConfigError("model.expert_groups", groups, f"must divide experts={experts}", f"try {fit}")
    _at_most(spec, "top_groups", "expert_groups", groups)
    _at_most(spec, "top_k", "the experts of the groups kept", experts // groups * top_groups)


def _at_most(spec: ModelSpec, name: str, limit_name: str, limit: int | None) -> None:
    """A field that is given is at most ``limit``."""
    value = getattr(spec, name)
    if value is not None and limit is not None and value > limit:
        raise ConfigError(f"model.{name}", value, f"must be at most {limit_name}={limit}", f"try {limit}")

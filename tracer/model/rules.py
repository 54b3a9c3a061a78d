"""What the values of a ModelSpec must satisfy, one by one and together."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tracer.errors import (
    MAX_SIZE,
    ConfigError,
    check_bool,
    check_text,
    divisors,
    finite_number,
    nearest,
    whole_number,
)
from tracer.model.router_kind import RouterKind
from tracer.model.weight_format import WeightFormat

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec

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
    "dense_hidden": 14336, "experts": 32, "top_k": 2, "expert_hidden": 2048, "shared_hidden": 2048,
    "expert_groups": 8, "top_groups": 4,
}  # fmt: skip
FORMAT_FIELDS = ("weights", "attention_weights", "dense_weights", "shared_weights", "expert_weights")
NEEDS_EXPERTS = (
    "top_k", "expert_hidden", "shared_experts", "shared_hidden", "shared_gate", "expert_groups",
    "top_groups", "router", "routed_scale", "renormalise", "shared_weights", "expert_weights",
)  # fmt: skip
NEEDS_MLA = ("q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim")


def check_model(spec: ModelSpec) -> dict[str, object]:
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


def fill_defaults(spec: ModelSpec) -> dict[str, object]:
    """Values for the absent fields that follow from others; ``spec`` has passed ``check_model``."""
    filled: dict[str, object] = {"kv_heads": spec.kv_heads or spec.heads}
    head_dim = spec.head_dim
    if head_dim is None and not spec.mla and spec.hidden and spec.heads and spec.hidden % spec.heads == 0:
        head_dim = spec.hidden // spec.heads
    if not spec.mla:
        filled |= {"head_dim": head_dim, "v_head_dim": spec.v_head_dim or head_dim}
    if spec.shared_experts and spec.shared_hidden is None and spec.expert_hidden:
        filled["shared_hidden"] = spec.shared_experts * spec.expert_hidden
    return filled


def _single_values(spec: ModelSpec) -> dict[str, object]:
    """Check each field alone; those whose type a reader may give more loosely come back converted."""
    for name in SIZE_EXAMPLES:
        _if_given(spec, name, partial(whole_number, at_most=MAX_SIZE))
    for name, most in MOST.items():
        if getattr(spec, name) is not None:
            whole_number(f"model.{name}", getattr(spec, name), at_most=most)
    whole_number("model.shared_experts", spec.shared_experts, at_least=0, at_most=MAX_EXPERTS)
    for name in ("tie_embeddings", "shared_gate", "renormalise"):
        _if_given(spec, name, check_bool)
    for name in ("name", "source"):
        _if_given(spec, name, check_text)
    final: dict[str, object] = {name: _word(spec, name, WeightFormat) for name in FORMAT_FIELDS}
    final["router"] = _word(spec, "router", RouterKind)
    final["routed_scale"] = _if_given(spec, "routed_scale", partial(finite_number, at_most=MAX_SIZE))
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

"""A Hugging Face config.json in, a ModelSpec out."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.families import FAMILIES, MODEL_TYPES, WRAPPED, Family
from tracer.model.configs.guess import family_of_unknown
from tracer.model.configs.parts import LAYERS, layer_count, layer_types
from tracer.model.configs.quantised import read_weight_formats
from tracer.model.configs.wrappers import Opened, open_wrapper
from tracer.model.layers import (
    LayerKind,
    MoeFfn,
    QkNorm,
)
from tracer.model.main_sizes import main_sizes
from tracer.model.spec import MAX_LAYERS, ModelSpec

MAX_CONFIG_BYTES = 8 << 20
MAX_DEPTH = 12
"""No config.json comes near these: the largest ones, with a quantisation list, have half a megabyte."""
QUANT_FILE = "hf_quant_config.json"
_ORIGINS = {
    "hidden": ("hidden_size", "n_embd"), "vocab": ("vocab_size",),
    "heads": ("num_attention_heads", "n_head"), "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",), "dense_hidden": ("intermediate_size",),
    "experts": ("n_routed_experts", "num_experts", "num_local_experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token"), "expert_groups": ("n_group",),
    "top_groups": ("topk_group",), "routed_scale": ("routed_scaling_factor",),
    "shared_experts": ("n_shared_experts",), "expert_hidden": ("moe_intermediate_size",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReadModel:
    """A spec and what its reader should know: defaults taken, parts that no count includes."""

    spec: ModelSpec
    warnings: tuple[str, ...]


def read_config(
    config: object, name: str | None = None, source: str | None = None, quantisation: object = None
) -> ReadModel:
    """The spec of a parsed config.json; ``name`` and ``source`` go into it as they are.

    ``quantisation`` is the parsed ``hf_quant_config.json`` that lies beside the config, if there is one.

    Raises:
        ConfigError: naming ``config.<key>``, for a key that is missing, malformed or of unknown meaning,
            and for a model_type that is not read, with the reason.
    """
    _check_depth(config)
    outer = ConfigKeys(config)
    opened = open_wrapper(outer)
    family = _family(opened.keys, outer)
    tied = next(
        (k.flag("tie_word_embeddings") for k in reversed(opened.around) if k.has("tie_word_embeddings")), None
    )
    keys = opened.keys.defaults(
        dict(family.defaults) | ({"tie_word_embeddings": family.tied} if tied is None else {})
    )
    for text in family.assumed:
        keys.warn(f"assumed: {text}")
    if any(keys.has(key) for key in LAYERS):
        keys.size(keys.first(*LAYERS), high=MAX_LAYERS // family.layers_each)
    layer_types(keys)
    kinds = _alike([family.layer(keys, index) for index in range(layer_count(keys) * family.layers_each)])
    values: dict[str, Any] = {
        "vocab": keys.size("vocab_size"),
        "hidden": keys.size(keys.first("hidden_size", "n_embd")),
    }
    values |= main_sizes(kinds) | _useful(family.ends(keys), kinds)
    values["tie_embeddings"] = family.tied if tied is None else tied
    values |= {"name": name, "source": source, "mtp_layers": _mtp_layers(keys)}
    values["vision_parameters"] = _vision(family, opened)
    beside = tuple(part for part in opened.beside if not (values["vision_parameters"] and "vision" in part))
    values["left_out"] = _left_out(keys, beside, values["mtp_layers"])
    spec = _spec(values, kinds, keys)
    spec = read_weight_formats(opened.around, keys, spec, quantisation, family.blocks)
    return ReadModel(spec, tuple(keys.warnings))


def read_config_file(path: str | Path) -> ReadModel:
    """The spec of a config.json on disk; its source is the path as given.

    Raises:
        ConfigError: naming ``model.config`` when the file cannot be read or is not JSON, else as
            ``read_config``.
    """
    where = Path(path)
    config = _json(where)
    beside = where.with_name(where.name.replace("config.json", QUANT_FILE))
    quantisation = _json(beside) if beside != where and beside.is_file() else None
    return read_config(config, source=str(path), quantisation=quantisation)


def _json(path: Path) -> object:
    """A JSON file of a size that a config has.

    Raises:
        ConfigError: naming ``model.config``.
    """
    fix = "give the path of a config.json"
    try:
        size = path.stat().st_size
        text = path.read_text(encoding="utf-8") if size <= MAX_CONFIG_BYTES else None
        if text is not None:
            return json.loads(text)
    except OSError as error:
        raise ConfigError("model.config", str(path), f"cannot be read ({error.strerror})", fix) from error
    except (ValueError, RecursionError) as error:
        rule = f"is not a JSON file ({type(error).__name__})"
        raise ConfigError("model.config", str(path), rule, fix) from error
    rule = f"has {size:,} bytes; a config has at most {MAX_CONFIG_BYTES:,}"
    raise ConfigError("model.config", str(path), rule, fix)


def _check_depth(config: object) -> None:
    """Tables and lists are nested no deeper than a config's are, walked without recursion."""
    level: list[object] = [config]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list | tuple):
                inner += each
        level = [each for each in inner if isinstance(each, dict | list | tuple)]
        if not level:
            return
    raise ConfigError("config", "a table", f"is nested deeper than {MAX_DEPTH} tables", "give a config.json")


def _alike(kinds: list[LayerKind]) -> tuple[LayerKind, ...]:
    """The same kinds, equal ones as one object."""
    known: dict[LayerKind, LayerKind] = {}
    return tuple(known.setdefault(kind, kind) for kind in kinds)


_ROUTING = ("router", "renormalise", "routed_scale", "expert_groups", "top_groups", "shared_experts")


def _useful(ends: dict[str, Any], kinds: tuple[LayerKind, ...]) -> dict[str, Any]:
    """What a family says beside its layers; nothing of experts where no layer has any."""
    moe = [kind.feed_forward for kind in kinds if isinstance(kind.feed_forward, MoeFfn)]
    drop: tuple[str, ...] = () if moe else _ROUTING
    if moe and not moe[0].shared_width:
        drop = ("shared_experts",)
    if moe and moe[0].shared_width and not ends.get("shared_experts"):
        drop = ("shared_experts",)
    return {key: value for key, value in ends.items() if key not in drop}


def _family(keys: ConfigKeys, outer: ConfigKeys) -> Family:
    """The family of ``model_type``; a config whose architecture is another family's is refused."""
    here = keys if "model_type" in keys.table else outer
    model_type = here.table.get("model_type")
    if not isinstance(model_type, str):
        raise ConfigError(here.field("model_type"), model_type, "must name a family", "try 'deepseek_v3'")
    family = MODEL_TYPES.get(model_type) or MODEL_TYPES.get(WRAPPED.get(model_type, ""))
    if family is None:
        return family_of_unknown(keys, model_type)
    for architecture in keys.words("architectures"):
        _check_architecture(keys, family, architecture, model_type)
    return family


def _check_architecture(keys: ConfigKeys, family: Family, architecture: str, model_type: str) -> None:
    """``architecture`` is the family's; the longest family name it starts with decides."""
    names = [
        (len(prefix), each.architecture)
        for each in FAMILIES
        for prefix in each.architectures
        if architecture.startswith(prefix)
    ]
    if names and max(names)[1] != family.architecture:
        rule = f"is not what model_type={model_type!r} runs"
        fix = "make model_type and architectures name one family"
        raise ConfigError(keys.field("architectures"), architecture, rule, fix)


def _mtp_layers(keys: ConfigKeys) -> int:
    """Layers that predict further tokens; the model classes leave them out, and so do the counts."""
    if keys.has("num_mtp_modules") and keys.switch("use_mtp", True):
        return keys.whole("num_mtp_modules") * keys.whole("mtp_transformer_layers", 1)
    for key in ("num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers"):
        if keys.has(key):
            return keys.whole(key)
    return 0


def _vision(family: Family, opened: Opened) -> int:
    """Parameters of a vision encoder that the class of the language model holds, 0 where it holds none."""
    outer = opened.around[0]
    if family.vision is None or len(opened.around) == 1 or not outer.has("vision_config"):
        return 0
    hidden = opened.keys.size("hidden_size")
    return family.vision(outer.nested("vision_config"), hidden)


def _left_out(keys: ConfigKeys, beside: tuple[str, ...], mtp_layers: int) -> tuple[str, ...]:
    """Parts of the real model that no count includes, with a warning for each."""
    left_out = list(beside)
    if mtp_layers:
        left_out.append(f"{mtp_layers} multi-token-prediction layer(s)")
    for part in left_out:
        keys.warn(f"no count includes {part}")
    return tuple(left_out)


def _describes(simple: ModelSpec, kinds: tuple[LayerKind, ...]) -> bool:
    """Whether the sizes of a spec alone make layers of these kinds."""
    if len(set(kinds)) > 2:
        return False
    try:
        return all(simple.kind_of(number) == kind for number, kind in enumerate(kinds, start=1))
    except ConfigError:
        return False


def _spec(values: dict[str, Any], kinds: tuple[LayerKind, ...], keys: ConfigKeys) -> ModelSpec:
    """The spec; an error about one of its fields names the config key behind that field.

    Where its sizes alone describe every layer, ``layer_kinds`` stays empty.
    """
    try:
        flags: dict[str, Any] = {name: values.pop(name, False) for name in ("qkv_bias", "out_bias")}
        qk_norm = values.pop("qk_norm", "none")
        ffns = [kind.feed_forward for kind in kinds if kind.feed_forward is not None]
        alike: dict[str, Any] = {
            "gated": all(each.gated for each in ffns),
            "ffn_bias": all(each.bias for each in ffns),
        }
        simple = ModelSpec(**values, **flags, **alike, qk_norm=qk_norm)
        if _describes(simple, kinds):
            return simple
    except ConfigError as error:
        key = keys.first(*_ORIGINS.get(error.field.removeprefix("model."), ("",)))
        if not key:
            raise
        raise ConfigError(keys.field(key), error.got, error.rule, error.fix) from error
    return replace(
        simple,
        layer_kinds=kinds,
        qkv_bias=False,
        out_bias=False,
        qk_norm=QkNorm.NONE,
        gated=True,
        ffn_bias=False,
    )

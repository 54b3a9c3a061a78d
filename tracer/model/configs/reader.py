"""A Hugging Face config.json in, a ModelSpec out.

Models that are known and refused, each with the reason: their counts would be guesses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tracer.errors import ConfigError, nearest
from tracer.model.configs import deepseek, dense, glm4_moe, gpt_oss, llama4, mixtral, qwen_moe
from tracer.model.configs.config_keys import ConfigKeys
from tracer.model.configs.family import Family
from tracer.model.configs.weight_formats import read_weight_formats
from tracer.model.spec import MAX_LAYERS, ModelSpec

REFUSED_MODEL_TYPES = {
    "deepseek_v4": (
        "is not read: its first layers route by hash, its scores are sqrtsoftplus, its attention is "
        "compressed by layer, and no parameter total of it has been checked"
    ),
    "glm_moe_dsa": (
        "is not read: its attention picks keys with a sparse indexer, and no parameter total of it has "
        "been checked"
    ),
    "minimax_m2": (
        "is not read: its routing bias and per-layer q/k norms are its own, and no parameter total of it "
        "has been checked"
    ),
}
REFUSED_PRESETS = {
    "deepseek-v4-flash": "deepseek_v4",
    "deepseek-v4-pro": "deepseek_v4",
    "glm-5": "glm_moe_dsa",
    "minimax-m2.5": "minimax_m2",
}
REFUSAL_FIX = "give the sizes that matter in [model] by hand"


FAMILIES = (
    deepseek.FAMILY, glm4_moe.FAMILY, mixtral.FAMILY, qwen_moe.QWEN2, qwen_moe.QWEN3,
    gpt_oss.FAMILY, llama4.FAMILY, dense.LLAMA, dense.QWEN3,
)  # fmt: skip
MODEL_TYPES = {model_type: family for family in FAMILIES for model_type in family.model_types}
LAYER_KINDS = ("full_attention", "sliding_attention", "chunked_attention")


@dataclass(frozen=True, slots=True)
class ReadModel:
    """A spec and what its reader should know: defaults taken, parts that no count includes."""

    spec: ModelSpec
    warnings: tuple[str, ...]


def read_config(config: object, name: str | None = None, source: str | None = None) -> ReadModel:
    """The spec of a parsed config.json; ``name`` and ``source`` go into it as they are.

    Raises:
        ConfigError: naming ``config.<key>``, for a key that is missing, malformed or of unknown meaning,
            and for a model_type that is not read, with the reason.
    """
    outer = ConfigKeys(config)
    family = _family(outer)
    nested = outer.table["model_type"] == "llama4"
    keys = (outer.nested("text_config") if nested else outer).defaults(
        {"tie_word_embeddings": False} | dict(family.defaults)
    )
    keys.size("num_hidden_layers", high=MAX_LAYERS)
    values = {field: keys.size(key) for field, key in family.sizes.items()} | family.rest(keys)
    values["tie_embeddings"] = keys.flag("tie_word_embeddings")
    values |= read_weight_formats(outer, keys) | {"name": name, "source": source}
    values["left_out"] = _left_out(keys, values.get("left_out", ()))
    _check_layer_kinds(keys)
    spec = _spec(values, dict(family.sizes) | dict(family.origins), keys)
    return ReadModel(spec, tuple(keys.warnings))


def read_config_file(path: str | Path) -> ReadModel:
    """The spec of a config.json on disk; its source is the path as given.

    Raises:
        ConfigError: naming ``model.config`` when the file cannot be read or is not JSON, else as
            ``read_config``.
    """
    try:
        config = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        rule = f"cannot be read ({error.strerror})"
        raise ConfigError("model.config", str(path), rule, "give the path of a config.json") from error
    except (ValueError, RecursionError) as error:
        rule = f"is not a JSON file ({type(error).__name__})"
        raise ConfigError("model.config", str(path), rule, "give the path of a config.json") from error
    return read_config(config, source=str(path))


def _family(keys: ConfigKeys) -> Family:
    """The family of ``model_type``; a config whose architecture is another family's is refused."""
    model_type = keys.table.get("model_type")
    if not isinstance(model_type, str):
        raise ConfigError(keys.field("model_type"), model_type, "must name a family", "try 'deepseek_v3'")
    if model_type in REFUSED_MODEL_TYPES:
        raise ConfigError(keys.field("model_type"), model_type, REFUSED_MODEL_TYPES[model_type], REFUSAL_FIX)
    if model_type not in MODEL_TYPES:
        rule = "is not a family this reader knows"
        raise ConfigError(keys.field("model_type"), model_type, rule, nearest(model_type, list(MODEL_TYPES)))
    family = MODEL_TYPES[model_type]
    for architecture in keys.words("architectures"):
        _check_architecture(keys, family, architecture)
    return family


def _check_architecture(keys: ConfigKeys, family: Family, architecture: str) -> None:
    """``architecture`` is the family's; the longest family name it starts with decides."""
    names = [each.architecture for each in FAMILIES if architecture.startswith(each.architecture)]
    if names and max(names, key=len) != family.architecture:
        rule = f"is not what model_type={keys.table['model_type']!r} runs"
        fix = "make model_type and architectures name one family"
        raise ConfigError(keys.field("architectures"), architecture, rule, fix)


def _left_out(keys: ConfigKeys, parts: object) -> tuple[str, ...]:
    """Parts of the real model that no count includes, with a warning for each."""
    left_out = list(parts) if isinstance(parts, tuple) else []
    if keys.has("num_nextn_predict_layers") and keys.size("num_nextn_predict_layers", low=0):
        left_out.append(f"{keys.size('num_nextn_predict_layers')} multi-token-prediction layer(s)")
    for part in left_out:
        keys.warn(f"no count includes {part}")
    return tuple(left_out)


def _check_layer_kinds(keys: ConfigKeys) -> None:
    """Every entry of ``layer_types`` is attention; a window is said to be left out."""
    kinds = keys.words("layer_types")
    for kind in kinds:
        if kind not in LAYER_KINDS:
            rule = "is not a kind of layer this reader knows"
            raise ConfigError(keys.field("layer_types"), kind, rule, nearest(kind, list(LAYER_KINDS)))
    if kinds and len(kinds) != keys.size("num_hidden_layers"):
        rule = f"must have one entry for each of num_hidden_layers={keys.size('num_hidden_layers')}"
        raise ConfigError(keys.field("layer_types"), f"{len(kinds)} entries", rule, "add or remove entries")
    if set(kinds) - {"full_attention"} or (keys.has("attention_chunk_size")):
        keys.warn("attention windows are not counted: every layer keeps the K/V of every token")


def _spec(values: dict[str, object], origins: dict[str, str], keys: ConfigKeys) -> ModelSpec:
    """The spec; an error about one of its fields names the config key behind that field."""
    try:
        return ModelSpec.from_dict(values)
    except ConfigError as error:
        key = origins.get(error.field.removeprefix("model."))
        if key is None:
            raise
        raise ConfigError(keys.field(key), error.got, error.rule, error.fix) from error

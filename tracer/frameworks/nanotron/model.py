"""nanotron's ``model.model_config`` as a model: the sizes of a Llama or a dense Qwen2.

Source: ``nanotron/config/models_config.py`` (LlamaConfig) and ``models/llama.py`` of nanotron 0.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.errors import ConfigError
from tracer.frameworks.flags import Flag, Kind, model_flag
from tracer.frameworks.found_model import FoundModel
from tracer.frameworks.notes import Note
from tracer.frameworks.unread import Unread
from tracer.model.spec import ModelSpec

if TYPE_CHECKING:
    from tracer.frameworks.settings import Settings


def _key(name: str, kind: Kind = Kind.INT, default: object = None) -> Flag:
    key = f"model.model_config.{name}"
    return model_flag(name, f"--{key}", kind=kind, default=default, keys=(key,))


_SIZES = {
    "num_hidden_layers": "layers", "hidden_size": "hidden", "intermediate_size": "dense_hidden",
    "num_attention_heads": "heads", "num_key_value_heads": "kv_heads", "vocab_size": "vocab",
}  # fmt: skip
_NEEDED = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads")
_TIED, _BIAS = "tie_word_embeddings", "attention_bias"
MODEL_FLAGS = (
    *(_key(name) for name in _SIZES),
    _key(_TIED, Kind.ON_OFF, False),
    _key(_BIAS, Kind.ON_OFF, False),
)


def model_of_config(settings: Settings) -> FoundModel:
    """The model that the configuration gives; none, and why, where a size is missing or not a number.

    Raises:
        ConfigError: naming the key, for sizes that make no model.
    """
    given = [name for name in _SIZES if settings.has(name)]
    if not given:
        return FoundModel()
    unread = [name for name in given if isinstance(settings.given[name], Unread)]
    missing = [name for name in _NEEDED if not settings.has(name)]
    if unread or missing:
        lacks = ", ".join(f"model_config.{name}" for name in unread or missing)
        message = f"the sizes of model_config lack {lacks}: no model is made of them"
        return FoundModel(notes=(Note("model_unknown", message, "add them, or --model config.json"),))
    sizes = {_SIZES[name]: settings.maybe(name) for name in given}
    try:
        spec = ModelSpec(
            **sizes,  # type: ignore[arg-type]
            name="model of the configuration",
            source="model_config of nanotron",
            tie_embeddings=settings.on(_TIED),
            qkv_bias=settings.on(_BIAS),
        )
    except ConfigError as error:
        raise _of_key(error) from error
    shape = f"{spec.layers} layers, hidden {spec.hidden}, {spec.heads} heads"
    note = Note("model_of_sizes", f"model_config makes the model: {shape}", "add --model for another")
    return FoundModel(spec, notes=(note,))


def _of_key(error: ConfigError) -> ConfigError:
    """A rule of the model, in the name of the key that breaks it."""
    of_field = {field: f"model.model_config.{name}" for name, field in _SIZES.items()}
    name = of_field.get(error.field.removeprefix("model."))
    return error if name is None else ConfigError(name, error.got, error.rule, error.fix)

"""Configs that wrap a language model: which table is its own, and what else there is."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.errors import ConfigError
from tracer.model.configs.config_keys import ConfigKeys

_TEXT = ("text_config", "llm_config", "language_config", "thinker_config", "language_model_config")
_OTHERS = {
    "vision_config": "the vision encoder", "vit_config": "the vision encoder",
    "vision_encoder_config": "the vision encoder", "visual": "the vision encoder",
    "audio_config": "the audio encoder", "speech_config": "the audio encoder",
    "audio_encoder_config": "the audio encoder", "talker_config": "the talker",
    "code2wav_config": "the speech decoder", "projector_config": "the projector",
}  # fmt: skip
_MOST_NESTED = 4
_TEXT_OF = {"llama4": "text_config"}


@dataclass(frozen=True, slots=True)
class Opened:
    """The language model's table, the tables around it (outermost first), and the parts beside it."""

    keys: ConfigKeys
    around: tuple[ConfigKeys, ...]
    beside: tuple[str, ...]


def open_wrapper(outer: ConfigKeys) -> Opened:
    """The table that holds the language model's sizes.

    Raises:
        ConfigError: for tables nested deeper than any wrapper is.
    """
    keys, around, beside = outer, [outer], []
    for _ in range(_MOST_NESTED):
        beside += [name for key, name in _OTHERS.items() if isinstance(keys.table.get(key), dict)]
        key = _text_key(keys)
        if key is None:
            if len(around) > 1 and not beside:
                beside = ["the vision encoder"] if _is_multimodal(outer) else []
            return Opened(keys, tuple(around), tuple(dict.fromkeys(beside)))
        keys = keys.nested(key)
        around.append(keys)
    rule = f"is nested deeper than {_MOST_NESTED} tables"
    raise ConfigError(keys.path, "a table", rule, "give the language model's own config.json")


def _text_key(keys: ConfigKeys) -> str | None:
    """The key under which the language model lies, if it does not lie here."""
    needed = _TEXT_OF.get(str(keys.table.get("model_type")))
    found = next((key for key in _TEXT if isinstance(keys.table.get(key), dict)), None)
    return found or needed


def _is_multimodal(outer: ConfigKeys) -> bool:
    """Whether the outer config is that of a model that takes more than text."""
    return outer.has("model_type") or any("Conditional" in name for name in outer.words("architectures"))

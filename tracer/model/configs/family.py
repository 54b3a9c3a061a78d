"""What a model family is to the reader: which config keys hold which fields of a ModelSpec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tracer.model.configs.config_keys import ConfigKeys


@dataclass(frozen=True, slots=True)
class Family:
    """Models whose config.json has the same keys with the same meaning.

    ``sizes`` maps a ModelSpec field to the key that states it as a whole number. ``rest`` reads the
    fields that need more than one key, or a meaning. ``origins`` names the key behind each field that
    ``rest`` fills, so that an error about the spec can name it. ``defaults`` are the model class's
    own values for keys that may be absent; taking one is a warning.
    """

    model_types: tuple[str, ...]
    architecture: str
    sizes: Mapping[str, str]
    rest: Callable[[ConfigKeys], dict[str, object]]
    origins: Mapping[str, str]
    defaults: Mapping[str, object]


def dense_form(layers: int, moe_indices: range | frozenset[int]) -> int | tuple[int, ...]:
    """``dense_layers`` of a spec from the 0-based layers that have experts.

    >>> dense_form(6, range(3, 6))
    3
    >>> dense_form(6, range(1, 6, 2))
    (1, 3, 5)
    """
    dense = tuple(index + 1 for index in range(layers) if index not in moe_indices)
    return len(dense) if not dense or dense[-1] == len(dense) else dense


def optional_head_dim(keys: ConfigKeys) -> int:
    """``head_dim``, or hidden_size / num_attention_heads where the key is absent.

    Raises:
        ConfigError: when the key is absent and the heads don't divide the hidden size.
    """
    hidden, heads = keys.size("hidden_size"), keys.size("num_attention_heads")
    return keys.size("head_dim") if keys.has("head_dim") or hidden % heads else hidden // heads

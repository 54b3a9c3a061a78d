"""Real models that ship with the package, each with where its config.json was read."""

from __future__ import annotations

import json

from tracer.data import FOLDER
from tracer.errors import ConfigError, nearest
from tracer.model.configs.reader import ReadModel, read_config
from tracer.model.spec import ModelSpec

_MODELS = FOLDER / "models"


def model_preset_names() -> tuple[str, ...]:
    """Names of the models that ship, sorted.

    >>> "deepseek-v3" in model_preset_names()
    True
    """
    return tuple(sorted(each.stem for each in _MODELS.glob("*.json")))


def model_preset(name: object) -> ModelSpec:
    """The spec of a model that ships; upper and lower case are one.

    >>> model_preset("Mixtral-8x7B").experts
    8

    Raises:
        ConfigError: for a name that does not ship, with the nearest that does.
    """
    return read_model_preset(name).spec


def read_model_preset(name: object) -> ReadModel:
    """As ``model_preset``, with the warnings of its reader."""
    slug = name.lower() if isinstance(name, str) else ""
    if slug not in model_preset_names():
        raise ConfigError(
            "model.preset", name, "is not a model that ships", nearest(slug, list(model_preset_names()))
        )
    stored = json.loads((_MODELS / f"{slug}.json").read_text(encoding="utf-8"))
    beside = stored.get("hf_quant_config")
    return read_config(stored["config"], name=stored["name"], source=stored["source"], quantisation=beside)

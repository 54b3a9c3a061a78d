"""A model by the path of its config.json, or by the name of one that ships."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec


def read_model(source: str | None) -> ModelSpec | None:
    """The model of ``--model``; None when it is not given.

    Raises:
        ConfigError: when the file cannot be read, or no model of that name ships.
    """
    if source is None:
        return None
    if Path(source).suffix.lower() == ".json":
        from tracer.model.configs import read_config_file

        return read_config_file(source).spec
    from tracer.model.configs.presets import model_preset

    return model_preset(source)

"""A model by the path of its config.json, or by the name of one that ships."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.model.configs import ReadModel
    from tracer.model.spec import ModelSpec


def read_model(source: str | None) -> ModelSpec | None:
    """The model of ``--model``; None when it is not given.

    Raises:
        ConfigError: when the file cannot be read, or no model of that name ships.
    """
    return None if source is None else read_model_with_notes(source).spec


def read_model_with_notes(source: str) -> ReadModel:
    """The model of a config.json (a path, or a folder that holds one) or of a name that ships.

    Raises:
        ConfigError: as :func:`read_model`.
    """
    path = Path(source)
    if path.suffix.lower() == ".json" or path.is_dir():
        from tracer.model.configs import read_config_file

        return read_config_file(path / "config.json" if path.is_dir() else path)
    from tracer.model.configs.presets import read_model_preset

    return read_model_preset(source)

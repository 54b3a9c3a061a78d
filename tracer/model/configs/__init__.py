"""Models from Hugging Face config files: the reader, its families, and the configs that ship.

Read ``reader`` first, then ``families``: a table with an entry for each family, composed from ``parts``.
"""

from __future__ import annotations

from tracer.model.configs.presets import model_preset, model_preset_names, read_model_preset
from tracer.model.configs.reader import ReadModel, read_config, read_config_file

__all__ = [
    "ReadModel",
    "model_preset",
    "model_preset_names",
    "read_config",
    "read_config_file",
    "read_model_preset",
]

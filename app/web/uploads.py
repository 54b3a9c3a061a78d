"""Files that a reader sends: read in memory, checked, and turned into keys of an address."""

from __future__ import annotations

import json
from typing import Any

from app.query.address import flatten
from tracer.errors import ConfigError
from tracer.scenario.read import parse_text
from tracer.scenario.scenario import BareScenario

MAX_BYTES = 262_144


def read_upload(data: bytes, name: str) -> dict[str, Any]:
    """Keys for the address from a scenario file (.toml, .json) or a model's config.json.

    Raises:
        ConfigError: when the file is too large, is not text, or breaks a rule.
    """
    if len(data) > MAX_BYTES:
        raise ConfigError("file", name, f"is over {MAX_BYTES:,} bytes", "send a scenario or a config.json")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("file", name, "is not UTF-8 text", "send a .toml or .json file") from error
    tables = parse_text(text, ".toml" if name.lower().endswith(".toml") else ".json")
    if isinstance(tables, dict) and {"architectures", "model_type"} & set(tables):
        return _model_keys(text, name)
    BareScenario.from_dict(tables)
    return {"keys": {"scenario": "", **flatten(tables)}, "warnings": [], "reset": True}  # type: ignore[arg-type]


def _model_keys(text: str, name: str) -> dict[str, Any]:
    from tracer.model.configs import read_config

    read = read_config(
        json.loads(text), name=name.rsplit("/", 1)[-1].removesuffix(".json"), source="uploaded"
    )
    keys = {f"model.{key}": value for key, value in flatten(read.spec.to_dict()).items()}
    return {"keys": {"model": "", "picks": "", **keys}, "warnings": list(read.warnings), "reset": False}

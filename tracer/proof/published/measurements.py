"""Published measurements as they stand in the package's data, each with its source and setting."""

from __future__ import annotations

import json
from typing import Any

from tracer.data import FOLDER
from tracer.errors import ConfigError, nearest


def published(name: str) -> dict[str, Any]:
    """One published set: ``source``, ``setting`` and its rows, as stored.

    Raises:
        ConfigError: for a set that does not ship.
    """
    text = (FOLDER / "timing" / "published.json").read_text(encoding="utf-8")
    sets: dict[str, dict[str, Any]] = json.loads(text)
    if name not in sets:
        raise ConfigError("published", name, "is not a set that ships", nearest(name, sorted(sets)))
    return sets[name]


def nccl_table(kind: str, ranks: int) -> list[tuple[float, float]]:
    """(total bytes, seconds) of an NCCL collective on one H100 node, by size.

    Raises:
        ConfigError: for a collective or a group that was not measured.
    """
    tables = published("nccl")["tables"]
    key = f"{kind}/{ranks}"
    if key not in tables:
        raise ConfigError("published.nccl", key, "was not measured", nearest(key, sorted(tables)))
    return [(float(size), micros * 1e-6) for size, micros in tables[key]]

"""Exceptions to how a part of the model is stored: one matrix of it, in all layers or in some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracer.errors import ConfigError, check_known_keys, check_table, check_text, word_of
from tracer.model.layer_runs import numbers_of, written_runs
from tracer.model.weight_format import WeightFormat


@dataclass(frozen=True, slots=True)
class StoredAs:
    """``matrix`` of ``part`` is stored in ``format``, in ``layers`` (none named: wherever it is)."""

    part: str
    matrix: str
    format: WeightFormat
    layers: frozenset[int] = frozenset()


def stored_table(stored: Sequence[StoredAs]) -> list[dict[str, Any]]:
    """JSON values."""
    return [
        {"part": each.part, "matrix": each.matrix, "format": str(each.format)}
        | ({"layers": written_runs(sorted(each.layers))} if each.layers else {})
        for each in stored
    ]


def stored_from(value: object, layers: int) -> tuple[StoredAs, ...]:
    """The exceptions from a list of them or of tables.

    Raises:
        ConfigError: naming ``model.stored``.
    """
    field = "model.stored"
    if not isinstance(value, list | tuple):
        raise ConfigError(field, value, "must be a list of tables", "leave it out")
    return tuple(each if isinstance(each, StoredAs) else _one(field, each, layers) for each in value)


def _one(field: str, value: object, layers: int) -> StoredAs:
    table = check_table(field, value)
    check_known_keys(field, table, ["part", "matrix", "format", "layers"])
    named = table.get("layers")
    return StoredAs(
        check_text(f"{field}.part", table.get("part")),
        check_text(f"{field}.matrix", table.get("matrix")),
        word_of(f"{field}.format", table.get("format"), WeightFormat),
        frozenset() if named is None else frozenset(numbers_of(f"{field}.layers", named, layers)),
    )

"""A list of layer kinds as a short table, one entry for each kind with the layers that are of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tracer.display import number_runs
from tracer.errors import ConfigError, check_table, whole_number
from tracer.model.layers import LayerKind


def written_runs(numbers: Iterable[int]) -> str:
    """Ascending numbers as a model file writes them.

    >>> written_runs([1, 2, 3, 7, 9, 10])
    '1-3, 7, 9-10'
    """
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in number_runs(numbers))


def numbers_of(field: str, text: object, most: int) -> list[int]:
    """The numbers that runs name, each from 1 to ``most``.

    >>> numbers_of("layers", "1-3, 7", 8)
    [1, 2, 3, 7]

    Raises:
        ConfigError: naming ``field``.
    """
    rule, fix = f"must name layers from 1 to {most}", f"write '1-{most}'"
    if not isinstance(text, str):
        raise ConfigError(field, text, rule, fix)
    numbers: list[int] = []
    for run in text.split(","):
        first, _, last = run.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()) or len(first + last) > 16:
            raise ConfigError(field, text, rule, fix)
        low = whole_number(field, int(first), at_most=most)
        numbers += range(low, whole_number(field, int(last or first), at_least=low, at_most=most) + 1)
    return numbers


def layer_kinds_table(kinds: Sequence[LayerKind]) -> list[dict[str, Any]]:
    """One table for each kind, with its ``layers`` as runs."""
    layers: dict[LayerKind, list[int]] = {}
    for number, kind in enumerate(kinds, start=1):
        layers.setdefault(kind, []).append(number)
    return [{"layers": written_runs(numbers)} | kind.to_dict() for kind, numbers in layers.items()]


def layer_kinds_from(value: object, layers: int) -> tuple[LayerKind, ...]:
    """A kind for each layer, from a list of kinds or of tables; empty where ``value`` is.

    Raises:
        ConfigError: naming ``model.layer_kinds``, when a layer has no kind or two.
    """
    field = "model.layer_kinds"
    if not isinstance(value, list | tuple):
        raise ConfigError(field, value, "must be a list of tables", "leave it out")
    if all(isinstance(each, LayerKind) for each in value):
        if value and len(value) != layers:
            rule = f"must have one kind for each of layers={layers}"
            raise ConfigError(field, f"{len(value)} kinds", rule, "add or remove kinds")
        return tuple(value)
    found: dict[int, LayerKind] = {}
    for each in value:
        table = dict(check_table(field, each))
        numbers = numbers_of(f"{field}.layers", table.pop("layers", None), layers)
        kind = LayerKind.from_dict(field, table)
        for number in numbers:
            if found.setdefault(number, kind) is not kind:
                raise ConfigError(f"{field}.layers", number, "must name each layer once", "drop one")
    missing = next((number for number in range(1, layers + 1) if number not in found), None)
    if missing is not None:
        raise ConfigError(f"{field}.layers", None, f"says nothing of layer {missing}", "name every layer")
    return tuple(found[number] for number in range(1, layers + 1))

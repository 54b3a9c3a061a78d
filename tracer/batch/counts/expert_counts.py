"""Counts of picks ``[layers, experts]``, summed over a window of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.scenario.scenario import Scenario

FIELD = "counts"


@dataclass(frozen=True, eq=False)
class ExpertCounts:
    """How often each expert of some MoE layers was picked.

    ``counts``: ``[layers, experts]`` float64, logical experts, summed over the steps that were recorded;
    ``layers``: the model's layer numbers; ``notes``: what was done to the recorded values.
    """

    counts: NDArray[np.float64]
    layers: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, scenario: Scenario, recorded: NDArray[Any], slot_experts: NDArray[Any] | None = None
    ) -> ExpertCounts:
        """Counts for a scenario from an array as it was recorded.

        ``recorded`` is ``[layers, experts]`` or ``[window, layers, experts]``, which is summed; the layer
        axis has the MoE layers, or every layer (rows of dense layers are passed over). The last axis may be
        physical slots: ``slot_experts`` ``[layers, slots]`` or ``[slots]`` then says the expert of each, or
        the scenario's own slot tables do.

        Raises:
            ConfigError: for another shape, or for numbers that are no counts.
        """
        array = _numbers(recorded)
        notes = []
        if array.ndim == 3:
            notes.append(f"summed over the {array.shape[0]:,} steps of the recorded window")
            array = array.sum(0)
        rows, layers, note = _moe_rows(scenario, array)
        notes += note
        array = array[rows]
        if (array < 0).any():
            raise ConfigError(FIELD, "a number below 0", "cannot be a count", "give counts of 0 or more")
        experts = scenario.model.need("experts", "lay out counts")
        if array.shape[1] != experts:
            array = _by_expert(scenario, array, rows, layers, slot_experts)
            notes.append("recorded by physical slot, and summed over each expert's replicas")
        if not array.any():
            raise ConfigError(FIELD, "only zeros", "say nothing of any expert", "record some steps")
        return cls(array, layers, tuple(notes))

    @property
    def picks(self) -> float:
        """Picks counted in all layers."""
        return float(self.counts.sum())


def _numbers(recorded: NDArray[Any]) -> NDArray[np.float64]:
    dtype = recorded.dtype
    if not (np.issubdtype(dtype, np.integer) or np.issubdtype(dtype, np.floating)) or recorded.ndim not in (
        2,
        3,
    ):
        raise ConfigError(
            FIELD,
            f"{dtype} {list(recorded.shape)}",
            "must be numbers [layers, experts] or [window, layers, experts]",
            "give one number for each expert of each layer",
        )
    if 0 in recorded.shape:
        raise ConfigError(FIELD, list(recorded.shape), "hold nothing", "record some steps")
    array = recorded.astype(np.float64)
    if not np.isfinite(array).all():
        raise ConfigError(FIELD, "NaN or infinity", "is no count", "mend the file")
    return array


def _moe_rows(scenario: Scenario, array: NDArray[np.float64]) -> tuple[list[int], tuple[int, ...], list[str]]:
    """(rows of the array, the model's layers they are of, notes)."""
    model = scenario.model
    moe = tuple(layer for layer in range(1, model.layers + 1) if model.is_moe(layer))
    if not moe:
        raise ConfigError("model.experts", None, "is needed to lay out counts", "give the model experts")
    rows = len(array)
    if rows == len(moe):
        return list(range(rows)), moe, []
    if rows == model.layers:
        return [layer - 1 for layer in moe], moe, [f"rows of {rows - len(moe)} dense layers are passed over"]
    if rows < len(moe):
        return list(range(rows)), moe[:rows], [f"counts are of the first {rows} of {len(moe)} MoE layers"]
    raise ConfigError(
        FIELD,
        f"{rows} rows",
        f"must be one for each of the model's {len(moe)} MoE layers, or each of its {model.layers} layers",
        "the axes are [layers, experts]; [tokens, k] or [layers, tokens, k] are picks: --picks FILE",
    )


def _by_expert(
    scenario: Scenario,
    array: NDArray[np.float64],
    rows: list[int],
    layers: tuple[int, ...],
    slot_experts: NDArray[Any] | None,
) -> NDArray[np.float64]:
    """Counts by slot summed into counts by expert."""
    experts, slots = scenario.model.need("experts", "lay out counts"), array.shape[1]
    if slot_experts is not None:
        maps = slot_experts if slot_experts.ndim == 2 else slot_experts[None].repeat(max(rows) + 1, 0)
        if maps.ndim != 2 or maps.shape[1] != slots or len(maps) <= max(rows):
            got = list(slot_experts.shape)
            raise ConfigError(
                f"{FIELD}.physical_to_logical_map", got, f"must be [layers, {slots}]", "mend it"
            )
        tables = [maps[row].astype(np.int64) for row in rows]
    else:
        tables = [np.array(scenario.placement_of(layer).slots or (), np.int64) for layer in layers]
    found = np.zeros((len(array), experts))
    for row, table in enumerate(tables):
        if len(table) != slots or table.min(initial=0) < 0 or table.max(initial=0) >= experts:
            raise ConfigError(
                FIELD,
                f"{slots} numbers a layer",
                f"must be one for each of the model's {experts} experts",
                f"give counts by logical expert, a placement of {slots} slots, or the file's "
                "physical_to_logical_map; picks go to --picks",
            )
        np.add.at(found[row], table, array[row])
    return found

"""Expert counts from what serving engines write, and from plain tables.

- SGLang ``expert_distribution.py``: ``expert_distribution_recorder_*.pt`` with ``logical_count``
  ``[steps, layers, experts]`` (mode stat), or ``records`` of ``global_physical_count`` ``[layers, slots]`` a
  pass beside ``last_physical_to_logical_map`` (per_pass, per_token). ``--init-expert-location`` takes the
  first as JSON.
- TensorRT-LLM ``expert_statistic.py``: a folder with ``meta_info.json`` and ``rank*.safetensors``, one tensor
  ``[experts]`` under ``"<iteration>_<layer>"``; ranks are added up.
- vLLM ``eplb_state.py`` keeps ``expert_load_pass`` ``[layers, slots]`` and ``expert_load_window`` ``[window,
  layers, slots]``; it writes no file of them itself.
- A plain array or table, under the name ``counts`` where there are several.
"""

from __future__ import annotations

from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.counts.expert_counts import FIELD, ExpertCounts
from tracer.batch.picks.kinds import LOGICAL, MAPS, PHYSICAL, counts_key, iteration_of, looks_like_counts
from tracer.batch.picks.values import SUFFIXES, read_value
from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.batch.picks.source import Readable
    from tracer.scenario.scenario import Scenario

MAX_FILES = 4096


def read_counts(path: str | Readable, scenario: Scenario) -> ExpertCounts:
    """Counts of a file for a scenario's model, or of a folder that TensorRT-LLM wrote.

    Raises:
        ConfigError: for a file that cannot be read, or that holds anything but counts.
    """
    path = Path(path) if isinstance(path, str) else path
    if isinstance(path, Path) and isdir(path):
        return ExpertCounts.of(scenario, _by_iteration(_folder(path), str(path)))
    value = read_value(path, FIELD)
    if isinstance(value, dict):
        return _from_keys(value, scenario, str(path))
    return _checked(_array(value), scenario)


def holds_counts(path: Readable, scenario: Scenario) -> bool:
    """Whether a file says that it holds counts, by its keys, or by a number for each expert."""
    model = scenario.model
    if path.suffix.lower() == ".csv":
        return True
    if path.suffix.lower() not in SUFFIXES:
        return False
    value = read_value(path, FIELD)
    if isinstance(value, dict):
        return counts_key(value) is not None
    shape = _array(value).shape if isinstance(value, list | np.ndarray) else ()
    return looks_like_counts(shape, model.experts, model.top_k)


def _from_keys(value: dict[Any, Any], scenario: Scenario, name: str) -> ExpertCounts:
    slot_experts = next((_array(value[key]) for key in MAPS if key in value), None)
    for key in (*LOGICAL, *PHYSICAL):
        if key in value:
            return ExpertCounts.of(scenario, _array(value[key]), slot_experts)
    if counts_key(value) is not None and "records" in value:
        passes = [_array(_field(record)) for record in value["records"]]
        if any(each.shape != passes[0].shape for each in passes):
            raise ConfigError(FIELD, name, "has records of different shapes", "give records of one model")
        return ExpertCounts.of(scenario, np.stack(passes), slot_experts)
    if counts_key(value) is not None:
        return ExpertCounts.of(scenario, _by_iteration([value], name))
    if len(value) == 1:
        return _checked(_array(next(iter(value.values()))), scenario)
    raise ConfigError(
        FIELD,
        sorted(map(str, value))[:8],
        f"is none of {', '.join((*LOGICAL, *PHYSICAL))}",
        "name the array counts",
    )


def _field(record: object) -> object:
    if not isinstance(record, dict) or PHYSICAL[0] not in record:
        raise ConfigError(FIELD, "a record", f"has no {PHYSICAL[0]}", "give the file as it was dumped")
    return record[PHYSICAL[0]]


def _checked(array: NDArray[Any], scenario: Scenario) -> ExpertCounts:
    """Counts of a plain array, unless its last axis is a token's picks."""
    model = scenario.model
    last = array.shape[-1] if array.ndim else 0
    if last == model.top_k and last != model.experts and np.issubdtype(array.dtype, np.integer):
        raise ConfigError(
            FIELD,
            list(array.shape),
            f"has {last} numbers, the picks of a token; counts have one for each of {model.experts} experts",
            "give picks as --picks FILE",
        )
    return ExpertCounts.of(scenario, array)


def _array(value: object) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ConfigError(FIELD, "ragged lists", "are no table", "give every layer all experts") from error
    if array.dtype == object:
        raise ConfigError(FIELD, type(value).__name__, "holds no table of numbers", "check the nesting")
    return array


def _folder(path: Path) -> list[dict[str, Any]]:
    """The tables of every rank in TensorRT-LLM's folder."""
    files = sorted(path.glob("rank[0-9]*.safetensors"))
    files = [file for file in files if file.stem[4:].isdigit()]
    if not files or len(files) > MAX_FILES:
        rule = f"holds {len(files):,} files rank*.safetensors, and 1 to {MAX_FILES:,} are read"
        raise ConfigError(FIELD, str(path), rule, "give the folder that EXPERT_STATISTIC_PATH named")
    return [read_value(file, FIELD) for file in files]


def _by_iteration(tables: list[dict[Any, Any]], name: str) -> NDArray[np.float64]:
    """``[iterations, layers, experts]`` from tensors under ``"<iteration>_<layer>"``, summed over ranks."""
    found: dict[tuple[int, int], NDArray[np.float64]] = {}
    for table in tables:
        for key, value in table.items():
            place, array = iteration_of(key), _array(value)
            if place is None or array.ndim != 1:
                raise ConfigError(FIELD, str(key), "must be <iteration>_<layer>: [experts]", f"check {name}")
            if found and len(array) != len(next(iter(found.values()))):
                raise ConfigError(FIELD, str(key), "has another number of experts", f"check {name}")
            found[place] = found.get(place, 0) + array.astype(np.float64)
    iterations = sorted({iteration for iteration, _ in found})
    layers = sorted({layer for _, layer in found})
    if not found or len(found) != len(iterations) * len(layers):
        raise ConfigError(FIELD, name, "lacks some layer of an iteration", "record whole iterations")
    return np.array([[found[iteration, layer] for layer in layers] for iteration in iterations])

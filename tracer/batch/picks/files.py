"""Recorded picks from a file: which format it is, and how it becomes a source of picks."""

from __future__ import annotations

from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.picks.kinds import are_counts, check_are_picks, counts_key
from tracer.batch.picks.npy import NpyPicks, load_arrays, read_header
from tracer.batch.picks.recorded import from_megatron, from_router_logits, from_vllm, integers
from tracer.batch.picks.recording import RecordedRequest, read_recordings, tokens_first
from tracer.batch.picks.source import ArrayPicks, PickSource, Readable
from tracer.batch.picks.torch_file import SUFFIXES as TORCH
from tracer.batch.picks.values import read_value
from tracer.errors import ConfigError, one_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.model.spec import ModelSpec

FORMATS = ("auto", "plain", "vllm", "sglang", "megatron", "logits")
VALUES = (".json", *TORCH)


def read_picks(
    path: str | Readable, model: ModelSpec, *, layout: str = "auto", column: str | None = None
) -> PickSource:
    """Picks of a file: ``.npy``, ``.npz``, ``.parquet`` (or a folder of them), ``.json``, ``.pt``, ``.pth``.

    A file in memory is measured before it is unpacked; nothing of it is written anywhere.

    ``layout`` says what the arrays are: ``plain`` ``[layers, tokens, k]``; ``vllm`` ``[tokens, layers,
    k]``; ``sglang`` base64; ``megatron`` one ``[tokens, k]`` a layer; ``logits`` raw router logits. With
    ``auto`` floats are logits, known keys say the rest, and an array is tokens first where only its second
    axis has the model's layers. Several requests of a file follow each other.

    Raises:
        ConfigError: for a file or an array that is not what it should be, expert counts among them.
    """
    path = Path(path) if isinstance(path, str) else path
    one_of("format", layout, FORMATS)
    source = _read(path, model, layout, column)
    shape = (source.layers, source.tokens, source.top_k)
    check_are_picks(f"{list(shape)} of {path}", shape, model.experts, model.top_k)
    return source


def _read(path: Readable, model: ModelSpec, layout: str, column: str | None) -> PickSource:
    if path.suffix == ".parquet" or (isinstance(path, Path) and isdir(path)):
        from tracer.batch.picks.parquet import ParquetPicks

        return ParquetPicks.open(path, column)
    if path.suffix in VALUES:
        return ArrayPicks(_joined(read_requests(path, model, layout=layout)))
    if path.suffix not in (".npy", ".npz"):
        raise ConfigError(
            "picks", str(path), "has a suffix no reader knows", "give .npy .npz .parquet .json .pt or .pth"
        )
    if isinstance(path, Path) and path.suffix == ".npy" and layout in ("auto", "plain"):
        shape, _, dtype, _ = read_header(path)
        whole = np.issubdtype(dtype, np.integer)
        if layout == "plain" or (whole and not (len(shape) == 3 and _tokens_first(shape, model))):
            return NpyPicks.open(path)
    return ArrayPicks(_from_arrays(load_arrays(path), model, layout))


def read_requests(path: str | Readable, model: ModelSpec, *, layout: str = "auto") -> list[RecordedRequest]:
    """Every request of a file, with the texts of its tokens where the file has them.

    Raises:
        ConfigError: as :func:`read_picks`.
    """
    path = Path(path) if isinstance(path, str) else path
    if path.suffix not in (".npy", ".npz", *VALUES):
        rule = "has a suffix no reader of requests knows"
        raise ConfigError("picks", str(path), rule, "give .npy .npz .json .pt or .pth")
    value = read_value(path, "picks")
    key = counts_key(value)
    if key is not None:
        raise are_counts(f"{key} of {path}", model.experts, model.top_k)
    if path.suffix == ".npy" or (isinstance(value, dict) and path.suffix == ".npz" and "picks" not in value):
        arrays = value if isinstance(value, dict) else {"picks": value}
        if layout in ("logits", "megatron") or _are_logits(arrays) or not _named(arrays):
            return [RecordedRequest(_three_axes(_from_arrays(arrays, model, layout)))]
    found = read_recordings(value, model, layout)
    for each in found:
        check_are_picks(f"{list(each.picks.shape)} of {path}", each.picks.shape, model.experts, model.top_k)
    return found


def _joined(requests: list[RecordedRequest]) -> NDArray[Any]:
    """Requests one after the other along the token axis, ``[layers, tokens, k]``."""
    arrays = [each.picks[:, each.repeated :] for each in requests]
    if not arrays:
        raise ConfigError("picks", "no request", "is in the file", "save the response as it came")
    for array in arrays:
        if array.shape[0] != arrays[0].shape[0] or array.shape[2] != arrays[0].shape[2]:
            raise ConfigError(
                "routed_experts",
                list(array.shape),
                f"must match {list(arrays[0].shape)} but in tokens",
                "save one model's",
            )
    return np.concatenate(arrays, axis=1)


def _tokens_first(shape: tuple[int, ...], model: ModelSpec) -> bool:
    """As :func:`tokens_first`, but layers first where both would do: the order that is documented."""
    return shape[0] not in (model.layers, model.moe_layers) and tokens_first(shape, model)


def _are_logits(arrays: dict[str, NDArray[Any]]) -> bool:
    return bool(arrays) and np.issubdtype(next(iter(arrays.values())).dtype, np.floating)


def _named(arrays: dict[str, NDArray[Any]]) -> bool:
    """Whether names say what the arrays are."""
    return any(name in arrays for name in ("rollout_routed_experts", "routed_experts", "routing_indices"))


def _three_axes(array: NDArray[Any]) -> NDArray[Any]:
    return array[None] if array.ndim == 2 else integers("picks", array, 3)


def _from_arrays(arrays: dict[str, NDArray[Any]], model: ModelSpec, layout: str) -> NDArray[Any]:
    first = arrays.get("picks", next(iter(arrays.values()), np.empty(0)))
    if layout == "auto":
        layout = "logits" if np.issubdtype(first.dtype, np.floating) else "plain"
        if layout == "plain" and first.ndim == 3 and _tokens_first(first.shape, model):
            layout = "vllm"
    if layout == "logits":
        logits = [array for name, array in arrays.items() if name != "bias"]
        if len(logits) == 1 and logits[0].ndim == 3:
            logits = list(logits[0])
        bias = arrays.get("bias")
        return from_router_logits(logits, model, None if bias is None else list(bias))
    if layout == "vllm":
        return from_vllm(first)
    if layout == "megatron":
        return from_megatron([array for _, array in sorted(arrays.items(), key=_arr_number)])
    if layout == "sglang":
        raise ConfigError("format", layout, "is base64 text in JSON", "give the response's .json")
    return first


def _arr_number(item: tuple[str, object]) -> tuple[int, str]:
    """``np.savez`` names arrays arr_0, arr_1, ...; arr_10 comes after arr_9."""
    digits = "".join(char for char in item[0] if char.isdigit())
    return (int(digits) if digits else 0, item[0])


def read_sources(path: str | Path) -> NDArray[np.int64]:
    """Source rank of each token ``[tokens]``, from a ``.npy``.

    Raises:
        ConfigError: for a file that holds no such array.
    """
    array = load_arrays(Path(path)).get("picks", np.empty(0))
    return integers("sources", array, 1).astype(np.int64)

"""Recorded picks from a file: which format it is, and how it becomes a source of picks."""

from __future__ import annotations

import json
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.batch.picks.npy import NpyPicks, load_arrays, read_header
from tracer.batch.picks.recorded import (
    from_megatron,
    from_router_logits,
    from_sglang,
    from_vllm,
    from_vllm_response,
    integers,
)
from tracer.batch.picks.source import ArrayPicks, PickSource, Readable
from tracer.errors import ConfigError, one_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracer.model.spec import ModelSpec

FORMATS = ("auto", "plain", "vllm", "sglang", "megatron", "logits")


def read_picks(
    path: str | Readable, model: ModelSpec, *, layout: str = "auto", column: str | None = None
) -> PickSource:
    """Picks of a file: ``.npy``, ``.npz``, ``.parquet`` (or a folder of them), ``.json``.

    A file in memory is measured before it is unpacked; nothing of it is written anywhere.

    ``layout`` says what the arrays are: ``plain`` ``[layers, tokens, k]``; ``vllm`` ``[tokens, layers,
    k]``; ``sglang`` base64; ``megatron`` one ``[tokens, k]`` a layer; ``logits`` raw router logits. With
    ``auto`` floats are logits, known JSON keys say the rest, and any other array is plain.

    Raises:
        ConfigError: for a file or an array that is not what it should be.
    """
    path = Path(path) if isinstance(path, str) else path
    one_of("format", layout, FORMATS)
    if path.suffix == ".parquet" or (isinstance(path, Path) and isdir(path)):
        from tracer.batch.picks.parquet import ParquetPicks

        return ParquetPicks.open(path, column)
    if path.suffix == ".json":
        return ArrayPicks(_from_json(path, model, layout))
    if path.suffix not in (".npy", ".npz"):
        raise ConfigError(
            "picks", str(path), "has a suffix no reader knows", "give .npy .npz .parquet or .json"
        )
    if isinstance(path, Path) and path.suffix == ".npy" and layout in ("auto", "plain"):
        _, _, dtype, _ = read_header(path)
        if layout == "plain" or np.issubdtype(dtype, np.integer):
            return NpyPicks.open(path)
    return ArrayPicks(_from_arrays(load_arrays(path), model, layout))


def _from_arrays(arrays: dict[str, NDArray[Any]], model: ModelSpec, layout: str) -> NDArray[Any]:
    first = arrays.get("picks", next(iter(arrays.values()), np.empty(0)))
    if layout == "auto":
        layout = "logits" if np.issubdtype(first.dtype, np.floating) else "plain"
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


def _text(path: Readable) -> str:
    if isinstance(path, Path):
        from tracer.scenario.files import read_text

        return read_text(path, "picks")
    try:
        return path.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("picks", path.name, f"is not UTF-8 text: {error}", "send JSON") from error


def _from_json(path: Readable, model: ModelSpec, layout: str) -> NDArray[Any]:
    text = _text(path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError("picks", path.name, f"is not valid JSON: {error}", "mend the text") from error
    if layout == "auto":
        layout = _json_layout(value)
    if layout == "sglang":
        answers = value if isinstance(value, list) else [value]
        if not answers:
            raise ConfigError("picks", path.name, "holds no answer", "save the response as it came")
        layers, top_k = model.layers, model.need("top_k", "cut the picks")
        parts = [from_sglang(_sglang_field(answer), layers, top_k) for answer in answers]
        return np.concatenate(parts, axis=1)
    if layout == "vllm":
        return from_vllm_response(value) if isinstance(value, dict) else from_vllm(value)
    if layout == "megatron":
        return from_megatron(value)
    return integers("picks", value["picks"] if isinstance(value, dict) and "picks" in value else value, 3)


def _json_layout(value: object) -> str:
    """What a JSON value is, by its keys."""
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, dict):
        if "meta_info" in first or "routed_experts" in first:
            return "sglang"
        if "prompt_routed_experts" in first or "choices" in first:
            return "vllm"
    return "plain"


def _sglang_field(answer: object) -> str:
    table = answer.get("meta_info", answer) if isinstance(answer, dict) else answer
    found = table.get("routed_experts") if isinstance(table, dict) else table
    if not isinstance(found, str):
        raise ConfigError(
            "meta_info.routed_experts",
            found,
            "must be base64 text",
            "serve with --enable-return-routed-experts and ask for return_routed_experts",
        )
    return found


def read_sources(path: str | Path) -> NDArray[np.int64]:
    """Source rank of each token ``[tokens]``, from a ``.npy``.

    Raises:
        ConfigError: for a file that holds no such array.
    """
    array = load_arrays(Path(path)).get("picks", np.empty(0))
    return integers("sources", array, 1).astype(np.int64)

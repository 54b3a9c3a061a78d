"""Picks as serving engines and trainers record them, turned into ``[layers, tokens, k]``.

Sources: vLLM ``docs/training/routed_experts_replay.md``; SGLang ``routed_experts_capturer.py``;
Megatron-LM ``router_replay.py``; transformers ``modeling_*.py`` (router_logits are raw, before any
softmax, one array a MoE layer).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tracer.batch.picks.source import Picks
    from tracer.model.spec import ModelSpec


def integers(field: str, value: ArrayLike, dimensions: int) -> Picks:
    """``value`` as an integer array of a number of axes.

    Raises:
        ConfigError: for ragged lists, other types, or another number of axes.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ConfigError(
            field, _kind(value), "is ragged", "give every token the same number of picks"
        ) from error
    if not np.issubdtype(array.dtype, np.integer) or array.ndim != dimensions:
        raise ConfigError(
            field,
            f"{array.dtype} {list(array.shape)}",
            f"must be integers with {dimensions} axes",
            "check the nesting of the lists",
        )
    return array


def _listed(field: str, value: object) -> Sequence[Any]:
    """A list, as it came.

    Raises:
        ConfigError: for anything else.
    """
    if not isinstance(value, list | tuple):
        raise ConfigError(field, _kind(value), "must be a list", "pass it as it was recorded")
    return value


def _kind(value: object) -> str:
    return type(value).__name__


def from_vllm(routed_experts: ArrayLike) -> Picks:
    """VLLM's ``routed_experts`` ``[tokens, MoE layers, k]`` (int16; -1 for prefix-cached positions).

    Raises:
        ConfigError: for another shape.
    """
    return np.ascontiguousarray(integers("routed_experts", routed_experts, 3).transpose(1, 0, 2))


def from_sglang(encoded: str, layers: int, top_k: int) -> Picks:
    """SGLang's ``meta_info.routed_experts``: base64 of int32 ``(len(tokens) - 1, all layers, k)``.

    The layer axis has every hidden layer; dense ones are zeros. The last token is missing.

    Raises:
        ConfigError: for text that is not base64, or a length that is no whole number of tokens.
    """
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise ConfigError(
            "routed_experts", str(encoded)[:40], "is not base64", "pass the field as it came"
        ) from error
    if len(raw) % (4 * layers * top_k):
        raise ConfigError(
            "routed_experts",
            f"{len(raw):,} bytes",
            f"is no whole number of tokens of {layers} layers x {top_k} picks x 4 bytes",
            "check the model's layers and top_k",
        )
    array = np.frombuffer(raw, np.dtype("<i4")).reshape(-1, layers, top_k)
    return np.ascontiguousarray(array.transpose(1, 0, 2))


def from_megatron(recorded: Sequence[ArrayLike]) -> Picks:
    """Megatron's ``RouterReplay.get_recorded_data()``: one ``[tokens, k]`` a MoE router.

    Raises:
        ConfigError: naming the layer whose shape differs.
    """
    rows = _listed("recorded", recorded)
    arrays = [integers(f"recorded[{layer}]", entry, 2) for layer, entry in enumerate(rows)]
    if not arrays:
        raise ConfigError("recorded", [], "must hold one array a MoE layer", "record before you save")
    for layer, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise ConfigError(
                f"recorded[{layer}]",
                list(array.shape),
                f"must have the shape of the first, {list(arrays[0].shape)}",
                "record all layers of one batch",
            )
    return np.stack(arrays)


def from_router_logits(
    logits: Sequence[NDArray[np.floating[Any]]],
    model: ModelSpec,
    bias: Sequence[NDArray[np.floating[Any]]] | None = None,
) -> Picks:
    """Hugging Face ``router_logits`` (one ``[tokens, experts]`` a MoE layer, raw) through the model's router.

    Top-k of raw logits is wrong where a learned bias or expert groups take part; ``bias`` is then each
    layer's ``e_score_correction_bias`` ``[experts]``.

    Raises:
        ConfigError: for other shapes, or a missing bias.
    """
    from tracer.model.routers import Router, route

    if not len(logits):
        raise ConfigError(
            "router_logits", [], "must hold one array a MoE layer", "save the raw router_logits"
        )
    router, experts = Router.of(model), model.need("experts", "route tokens")
    if router.has_bias and bias is None:
        raise ConfigError(
            "bias",
            None,
            f"is needed: {model.name or 'this model'} picks by score + e_score_correction_bias",
            "save each layer's bias [experts] beside the logits, as 'bias'",
        )
    if not logits:
        raise ConfigError("router_logits", "no array", "must be one array a MoE layer", "save the logits")
    if bias is not None and len(bias) < len(logits):
        raise ConfigError("bias", f"{len(bias)} rows", f"must be one per layer of {len(logits)}", "save all")
    found = []
    for layer, each in enumerate(logits):
        if each.ndim != 2 or each.shape[1] != experts or not np.isfinite(each).all():
            raise ConfigError(
                f"router_logits[{layer}]",
                list(each.shape),
                f"must be finite numbers [tokens, {experts} experts]",
                "save the raw router_logits",
            )
        own = None if bias is None else np.asarray(bias[layer], np.float64)
        found.append(route(router, each.astype(np.float64), own)[0])
    return np.stack(found)

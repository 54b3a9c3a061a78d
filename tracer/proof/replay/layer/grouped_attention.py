"""Grouped-query attention on one TP rank: its query heads, and the K/V heads that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracer.proof.replay.layer.maths import rope

if TYPE_CHECKING:
    from tracer.model.spec import ModelSpec
    from tracer.proof.replay.checkpoint import Checkpoint
    from tracer.proof.replay.layer.maths import FloatArray, IntArray

WHY = "cut the heads"


def project(
    model: ModelSpec, weights: Checkpoint, layer: int, rows: FloatArray, positions: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Queries ``[rows, heads · width]`` and K/V ``[rows, kv heads · (width + value width)]`` of a rank.

    Column-parallel: the rank has the columns of its heads. Keys come first, both with rotary embedding.
    """
    width = model.need("head_dim", WHY)
    queries = rope(_heads(rows @ weights[f"{layer}.q"], width), positions)
    keys = rope(_heads(rows @ weights[f"{layer}.k"], width), positions)
    values = rows @ weights[f"{layer}.v"]
    return _flat(queries), np.concatenate((_flat(keys), values), axis=1)


def open_kv(
    model: ModelSpec, weights: Checkpoint, layer: int, stored: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Keys ``[rows, kv heads, width]`` and values ``[rows, kv heads, value width]`` of stored K/V."""
    width, value_width = model.need("head_dim", WHY), model.need("v_head_dim", WHY)
    split = stored.shape[1] // (width + value_width) * width
    return _heads(stored[:, :split], width), _heads(stored[:, split:], value_width)


def _heads(rows: FloatArray, width: int) -> FloatArray:
    return rows.reshape(len(rows), rows.shape[1] // width, width)


def _flat(heads: FloatArray) -> FloatArray:
    return heads.reshape(len(heads), heads.shape[1] * heads.shape[2])

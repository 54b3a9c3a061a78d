"""The formulas of a transformer layer on arrays, and the names of the array types that replay computes with.

Nothing here knows that there is a mesh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


EPSILON = 1e-6
ROPE_BASE = 10_000.0


@dataclass(frozen=True, slots=True)
class Partial:
    """Attention of queries over some of their keys: output, largest score, softmax sum.

    ``out`` is ``[queries, heads, value width]``, already divided by ``total``; ``top`` (m) and ``total``
    (ℓ, relative to m) are ``[queries, heads]``. A query that sees no key has m = -inf, ℓ = 0, output 0.
    """

    out: FloatArray
    top: FloatArray
    total: FloatArray


def rms_norm(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """RMSNorm over the last axis."""
    scale = np.sqrt(np.mean(rows * rows, axis=-1, keepdims=True) + EPSILON)
    result: FloatArray = rows / scale * weight
    return result


def swiglu(rows: FloatArray, gate: FloatArray, up: FloatArray, down: FloatArray) -> FloatArray:
    """``(silu(x·gate) * (x·up))·down`` of rows ``[rows, d]``; matrices ``[d, h]``, ``[d, h]``, ``[h, d]``."""
    gated = rows @ gate
    result: FloatArray = (gated * np.exp(-np.logaddexp(0.0, -gated)) * (rows @ up)) @ down
    return result


def rope(heads: FloatArray, positions: IntArray) -> FloatArray:
    """Rotary embedding of ``[rows, heads, even width]``: halves paired, as transformers' rotate_half does."""
    half = heads.shape[-1] // 2
    angles = positions[:, None] * ROPE_BASE ** (-np.arange(half) / half)
    cosine, sine = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    first, second = heads[..., :half], heads[..., half:]
    return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), axis=-1)


def attend(
    queries: FloatArray,
    keys: FloatArray,
    values: FloatArray,
    query_places: IntArray,
    key_places: IntArray,
) -> Partial:
    """Causal attention over some keys: a query sees the keys whose place is at most its own.

    ``queries`` ``[queries, heads, width]``, ``keys`` ``[keys, heads / g, width]``, ``values`` ``[keys,
    heads / g, value width]``: g query heads share one K/V head.
    """
    share = queries.shape[1] // keys.shape[1]
    wide_keys, wide_values = np.repeat(keys, share, axis=1), np.repeat(values, share, axis=1)
    scores = np.einsum("qhd,khd->qhk", queries, wide_keys, optimize=True) / np.sqrt(queries.shape[-1])
    scores = np.where(key_places[None, None, :] <= query_places[:, None, None], scores, -np.inf)
    top = scores.max(axis=-1, initial=-np.inf)
    raised = np.exp(scores - np.where(np.isneginf(top), 0.0, top)[..., None])
    total = raised.sum(axis=-1)
    out = np.einsum("qhk,khv->qhv", raised, wide_values, optimize=True)
    return Partial(out / np.where(total == 0.0, 1.0, total)[..., None], top, total)


def merge(one: Partial, two: Partial) -> Partial:
    """Both partials as if their keys had been together (online softmax).

    ``O = (w1·O1 + w2·O2) / (w1 + w2)``, ``w = e^(m_i - m)·ℓ_i``, ``m = max(m1, m2)``.
    """
    top = np.maximum(one.top, two.top)
    base = np.where(np.isneginf(top), 0.0, top)
    weight_one, weight_two = np.exp(one.top - base) * one.total, np.exp(two.top - base) * two.total
    total = weight_one + weight_two
    summed = weight_one[..., None] * one.out + weight_two[..., None] * two.out
    return Partial(summed / np.where(total == 0.0, 1.0, total)[..., None], top, total)


def merge_without_weights(one: Partial, two: Partial) -> Partial:
    """The plain mean of two outputs: what a merge that forgets m and ℓ would do."""
    return Partial((one.out + two.out) / 2, np.maximum(one.top, two.top), one.total + two.total)

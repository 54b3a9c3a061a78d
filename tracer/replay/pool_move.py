"""K/V moved from a prefill pool's GPUs to a decode pool's, piece by piece as the last trip says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracer.dtype import BYTES
from tracer.kv_layout import kv_heads_of
from tracer.kv_pieces import kv_pieces
from tracer.pools import Pools
from tracer.replay.kv_store import kv_name
from tracer.replay.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracer.kv_pieces import KvPiece
    from tracer.replay.arrays import IntArray
    from tracer.replay.machine import Gpu
    from tracer.scenario import Scenario


def move_kv(pools: Pools, sources: Sequence[Gpu], targets: Sequence[Gpu], replica: int, span: int) -> int:
    """Move the K/V of a replica's whole prompt to the same replica of the decode pool; bytes moved.

    Raises:
        MissingRowError: when a rank is to send K/V that it does not keep.
    """
    pair = Pools(_serving(pools.prefill, replica), _serving(pools.decode, replica))
    moved = 0
    for position in range(pools.prefill.token.prompt):
        token = replica * span + position
        for piece in kv_pieces(pair, position):
            for layer in piece.layers:
                moved += _move(pair, piece, sources[piece.src], targets[piece.dst], layer, token)
    return moved


def _serving(scenario: Scenario, replica: int) -> Scenario:
    """The scenario with its token on another replica."""
    token = replace(scenario.token, replica=replica, gpu=None, slot=scenario.slot, position=scenario.position)
    return replace(scenario, token=token)


def _move(pair: Pools, piece: KvPiece, source: Gpu, target: Gpu, layer: int, token: int) -> int:
    """Copy one piece's columns of one layer; what is not there yet is NaN until its own piece comes."""
    key = np.array([token])
    row = source.at(kv_name(layer), key)[0]
    taken = _columns(pair.prefill, piece.src, piece.heads)
    placed = _columns(pair.decode, piece.dst, piece.heads)
    size = len(_columns(pair.decode, piece.dst, _held(pair.decode, piece.dst)))
    held = target.rows.get(kv_name(layer), Rows.empty(size))
    present = token in held.keys
    values = held.at(key)[0].copy() if present else np.full(size, np.nan)
    values[placed] = row[taken]
    target.rows[kv_name(layer)] = held.placed(key, values[None, :])
    return len(taken) * BYTES[pair.prefill.dtype.kv]


def _held(scenario: Scenario, rank: int) -> tuple[int, ...]:
    return tuple(kv_heads_of(scenario, scenario.mesh.dense.coordinate(rank, "tp")))


def _columns(scenario: Scenario, rank: int, heads: tuple[int, ...]) -> IntArray:
    """Columns of a rank's K/V rows that hold some heads: keys come before values; MLA: all columns."""
    model, own = scenario.need_model(), _held(scenario, rank)
    if model.mla:
        return np.arange(model.kv_values_per_token)
    width, value_width = model.need("head_dim", "cut K/V"), model.need("v_head_dim", "cut K/V")
    places = [own.index(head) for head in heads]
    keys = [np.arange(width) + place * width for place in places]
    values = [len(own) * width + np.arange(value_width) + place * value_width for place in places]
    return np.concatenate((*keys, *values))

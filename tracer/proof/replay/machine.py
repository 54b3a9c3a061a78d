"""Virtual GPUs: each a dict of arrays of its own, joined by nothing but ``send``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracer.proof.replay.layer.rows import MissingRowError, RowKeyError, Rows
from tracer.proof.replay.sent import Ledger, Place, Sent
from tracer.trip.hop import Role

if TYPE_CHECKING:
    from tracer.proof.replay.checkpoint import Checkpoint
    from tracer.proof.replay.layer.maths import FloatArray, IntArray

SUMMED_ROLES = frozenset({Role.PARTIAL, Role.RESULT, Role.SUM})
"""Roles whose rows are added to what the destination holds; all others are put in place."""


@dataclass(slots=True)
class Gpu:
    """One rank: its shard of the weights by name, and the rows it holds of each tensor.

    ``pieces`` are those of sharded weights, by unit, ``[elements]``; ``unit_shapes`` are the shapes of the
    weights that a unit's pieces make up.
    """

    rank: int
    weights: Checkpoint
    rows: dict[str, Rows] = field(default_factory=dict)
    pulled: list[Checkpoint] = field(default_factory=lambda: [{}, {}])
    pieces: dict[str, FloatArray] = field(default_factory=dict)
    unit_shapes: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)

    def held(self, tensor: str) -> Rows:
        """All rows that it holds of a tensor.

        Raises:
            MissingRowError: when none ever reached this GPU.
        """
        if tensor not in self.rows:
            raise MissingRowError(f"GPU {self.rank} holds no {tensor}")
        return self.rows[tensor]

    def at(self, tensor: str, keys: IntArray) -> FloatArray:
        """Values ``[keys, width]`` of a tensor's rows.

        Raises:
            MissingRowError: when one of them never reached this GPU.
        """
        try:
            return self.held(tensor).at(keys)
        except RowKeyError as error:
            raise MissingRowError(f"GPU {self.rank} lacks row {error.key} of {tensor}") from None

    @property
    def live_bytes(self) -> int:
        """Bytes of its rows and of pulled weights in memory, as float64 and int64."""
        rows = sum(rows.keys.nbytes + rows.values.nbytes for rows in self.rows.values())
        return rows + sum(array.nbytes for buffer in self.pulled for array in buffer.values())


@dataclass(slots=True)
class Machine:
    """All GPUs of a mesh, the ledger of what they sent, and the most their live arrays ever took."""

    gpus: list[Gpu]
    ledger: Ledger
    peak_live_bytes: int = 0

    def send(
        self,
        place: Place,
        role: str,
        step: int,
        tensor: str,
        columns: tuple[IntArray, IntArray, IntArray],
        token_of: Callable[[IntArray], IntArray],
    ) -> None:
        """Copy rows of a tensor between GPUs; ``columns`` are source, destination and key of each row.

        All rows are read before any is written, as in one step of a collective. ``token_of`` tells the
        token ids of keys, for the ledger.

        Raises:
            MissingRowError: when a source does not hold a row it should send.
        """
        src, dst, keys = columns
        values = self._read(tensor, src, keys)
        for rank in np.unique(dst).tolist():
            here = dst == rank
            self._write(self.gpus[rank], tensor, role, keys[here], values[here])
        self.ledger.sent.append(Sent(place, role, step, src, dst, token_of(keys), int(values.shape[1])))

    def _read(self, tensor: str, src: IntArray, keys: IntArray) -> FloatArray:
        order = np.argsort(src, kind="stable")
        ranks, starts = np.unique(src[order], return_index=True)
        pieces = np.split(order, starts[1:])
        read = [self.gpus[rank].at(tensor, keys[piece]) for rank, piece in zip(ranks, pieces, strict=True)]
        values = np.empty((len(keys), read[0].shape[1]))
        values[order] = np.concatenate(read)
        return values

    @staticmethod
    def _write(gpu: Gpu, tensor: str, role: str, keys: IntArray, values: FloatArray) -> None:
        held = gpu.rows.get(tensor, Rows.empty(values.shape[1]))
        gpu.rows[tensor] = held.added(keys, values) if role in SUMMED_ROLES else held.placed(keys, values)

    def note_memory(self) -> None:
        """Remember the most that all rows and pulled weights took together."""
        self.peak_live_bytes = max(self.peak_live_bytes, sum(gpu.live_bytes for gpu in self.gpus))
